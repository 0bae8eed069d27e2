//! Arrays of the host as arguments of kernels.
//!
//! # What goes out in a scope is borrowed for the scope
//! ```
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::Device;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let mut out = vec![0.0f32; 3];
//! stream.scope(|scope| copy.launch_in(scope, &dims, (In(&[1.0f32, 2.0, 3.0]), Out(&mut out))))??;
//! assert_eq!(out, [1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//! An array of the closure's own would be gone before the elements have landed.
//! ```compile_fail,E0597
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::Device;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! stream.scope(|scope| {
//!     let mut out = vec![0.0f32; 3];
//!     copy.launch_in(scope, &dims, (In(&[1.0f32, 2.0, 3.0]), Out(&mut out)))
//! })??;
//! # Ok(())
//! # }
//! ```
//! One that is moved in would be gone even earlier.
//! ```compile_fail,E0277
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::Device;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let mut out = ndarray::Array1::from(vec![0.0f32; 3]);
//! stream.scope(|scope| copy.launch_in(scope, &dims, (In(&[1.0f32, 2.0, 3.0]), Out(out))))??;
//! # Ok(())
//! # }
//! ```
//! Nor can it be read inside.
//! ```compile_fail,E0502
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::Device;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let mut out = vec![0.0f32; 3];
//! stream.scope(|scope| {
//!     copy.launch_in(scope, &dims, (In(&[1.0f32, 2.0, 3.0]), Out(&mut out)))?;
//!     assert_eq!(out[0], 1.0);
//!     Ok(())
//! })??;
//! # Ok(())
//! # }
//! ```
//!
//! # An argument that is read is not one that is written
//! ```
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::Device;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let (x, mut y) = ([1.0f32, 2.0, 3.0], [0.0f32; 3]);
//! copy.launch(&stream, &dims, (In(&x), InOut(&mut y)))?;
//! assert_eq!(x, y);
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0502
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::Device;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let mut y = [0.0f32; 3];
//! copy.launch(&stream, &dims, (In(&y), InOut(&mut y)))?;
//! # Ok(())
//! # }
//! ```
//! Nor does a kernel write an `In` argument, or take an array of the host without a direction.
//! ```compile_fail,E0277
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::Device;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let (x, mut y) = ([1.0f32, 2.0, 3.0], [0.0f32; 3]);
//! copy.launch(&stream, &dims, (In(&x), In(&mut y)))?;
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0277
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::Device;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let (x, mut y) = ([1.0f32, 2.0, 3.0], [0.0f32; 3]);
//! copy.launch(&stream, &dims, (&x, &mut y))?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a type of the user's describes is borrowed for the scope
//! ```
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::{Device, Source, ToDevice};
//! # use ndarray::Ix1;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! struct Named(Vec<f32>);
//! impl ToDevice<Host> for Named {
//!     type Elem = f32;
//!     type Dim = Ix1;
//!     fn source(&self) -> Source<'_, f32, Ix1, Host> {
//!         self.0.source()
//!     }
//! }
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let mut out = vec![0.0f32; 3];
//! let named = Named(vec![1.0, 2.0, 3.0]);
//! stream.scope(|scope| copy.launch_in(scope, &dims, (In(&named), Out(&mut out))))??;
//! # Ok(())
//! # }
//! ```
//! By value it would be dropped, with all that it may own, before the kernel has read it.
//! ```compile_fail,E0277
//! # use gpumem_core::{LaunchConfig, Result};
//! # use gpumem_host::Host;
//! # use gpumem_kernel::{WorkItemIds, In, InOut, KernelDef, Out, Slice, SliceMut};
//! # use gpumem_runtime::{Device, Source, ToDevice};
//! # use ndarray::Ix1;
//! # type Copy = (Slice<f32>, SliceMut<f32>);
//! struct Named(Vec<f32>);
//! impl ToDevice<Host> for Named {
//!     type Elem = f32;
//!     type Dim = Ix1;
//!     fn source(&self) -> Source<'_, f32, Ix1, Host> {
//!         self.0.source()
//!     }
//! }
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! # // SAFETY: each work-item uses its own elements.
//! # let copy = unsafe { KernelDef::<Copy>::new("copy") };
//! # let copy = copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| y.set(ids.global_id(0), x.get(ids.global_id(0))));
//! # let (copy, dims) = (copy.load(&device)?, LaunchConfig::linear(1, 3));
//! let mut out = vec![0.0f32; 3];
//! let named = Named(vec![1.0, 2.0, 3.0]);
//! stream.scope(|scope| copy.launch_in(scope, &dims, (In(named), Out(&mut out))))??;
//! # Ok(())
//! # }
//! ```
