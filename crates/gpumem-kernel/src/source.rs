//! The text that a device's compiler gets.

use crate::simt::{ParameterInfo, Parameters};
use gpumem_core::{Extents, LaunchConfig};
use std::fmt::Write;

/// The portable prelude: ids, arrays, barriers, waves and atomics for CUDA and HIP, as a file that can be read on its own.
pub const PRELUDE: &str = include_str!("prelude.hpp");

/// What a kernel's text checks on a GPU; the numbers of the prelude.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Bounds {
    #[default]
    Unchecked = 0,
    Checked = 1,
    /// Everything but indices of slices and views.
    Functions = 2,
}

/// What a compiler is told of launches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchBounds {
    /// The most work-items of a group.
    pub(crate) items: u32,
    /// Groups that a multiprocessor is to hold; 0 if the compiler decides.
    pub(crate) groups: u32,
}

impl From<bool> for Bounds {
    fn from(checked: bool) -> Self {
        if checked { Self::Checked } else { Self::Unchecked }
    }
}

/// Returns the prelude, the kernel's source, and a check at compile time that kernel `name` has exactly the parameters
/// `P`. In messages, the source's lines keep their numbers, under the name `kernel`.
///
/// `wave_size` is that of the device; with `bounds`, an index past the end stops the kernel.
pub fn portable_text<P: Parameters>(source: &str, name: &str, wave_size: u32, bounds: bool) -> String {
    text_of(&P::list(), source, name, wave_size, bounds.into(), None, MOST_CONSTANT_BYTES)
}

/// The text for a list of parameters, with so many bytes of constant memory if any of them lies there.
pub(super) fn text_of(
    parameters: &[ParameterInfo],
    source: &str,
    name: &str,
    wave_size: u32,
    bounds: Bounds,
    launch_bounds: Option<LaunchBounds>,
    constant_bytes: usize,
) -> String {
    let launch_bounds = launch_bounds.map_or_else(String::new, |LaunchBounds { items, groups }| {
        format!("#define GPUMEM_MOST_ITEMS {items}\n#define GPUMEM_LEAST_GROUPS {groups}\n")
    });
    let constant_bytes = if uses_constants(parameters) { constant_bytes } else { 0 };
    let mut text = format!(
        "#define GPUMEM_WAVE {wave_size}\n#define GPUMEM_BOUNDS {}\n\
         #define GPUMEM_CONSTANT_BYTES {constant_bytes}\n{launch_bounds}#line 1 \"gpumem.hpp\"\n{PRELUDE}\n#line 1 \"kernel\"\n{source}\n",
        bounds as u8
    );
    let declared: Vec<String> = parameters.iter().map(device_type).collect();
    let list: String = declared.iter().fold(String::new(), |mut list, name| {
        let _ = write!(list, ", {name}");
        list
    });
    let _ = writeln!(
        text,
        "#line 1 \"declaration\"\nstatic_assert(gpumem::detail::has_parameters<decltype({name}){list}>::value, \
         \"kernel {name} was declared with the parameters ({})\");",
        declared.join(", ")
    );
    text
}

/// Bytes of constant memory that a module has everywhere. AMD's devices, where it is ordinary memory with another
/// cache, have more, which only a source in C++ can use.
pub(crate) const MOST_CONSTANT_BYTES: usize = 64 << 10;

/// Bytes to which arrays in constant memory are aligned. Elements that need more do not compile there.
pub(super) const CONSTANT_ALIGN: usize = 16;

/// Whether any of the parameters lies in constant memory.
pub(super) fn uses_constants(parameters: &[ParameterInfo]) -> bool {
    parameters.iter().any(|parameter| parameter.is_constant)
}

/// The type in device code; by size and alignment where only the source knows it.
fn device_type(parameter: &ParameterInfo) -> String {
    let ParameterInfo { size, align, device_type, .. } = parameter;
    device_type.clone().unwrap_or_else(|| format!("gpumem::detail::sized<{size}, {align}>"))
}

/// Returns a launch of enough groups of `group_size` work-items to cover `items` along each axis, at least one:
/// `config_for_items(len, 256)`, `config_for_items((width, height), (16, 16))`. The numbers are those of x, y and z. Where
/// they need [`u32::MAX`] groups along an axis or more, the result has [`u32::MAX`], which every launch refuses
/// ([`LaunchTooLarge`](gpumem_core::ErrorKind::LaunchTooLarge)).
/// ```
/// use gpumem_kernel::config_for_items;
///
/// let config = config_for_items(1000, 256).shared_bytes(1024);
/// assert_eq!((config.groups, config.group_size), ([4, 1, 1], [256, 1, 1]));
/// ```
pub fn config_for_items(
    items: impl Into<Extents<usize>>,
    group_size: impl Into<Extents<u32>>,
) -> LaunchConfig {
    let (Extents(items), Extents(group_size)) = (items.into(), group_size.into());
    let groups = [0, 1, 2].map(|axis| {
        let groups = items[axis].div_ceil(group_size[axis].max(1) as usize).max(1);
        u32::try_from(groups).unwrap_or(u32::MAX)
    });
    LaunchConfig { groups, group_size, shared_bytes: 0 }
}
