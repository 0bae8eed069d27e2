//! Descriptors of other libraries, from sensible to absurd: each is imported correctly or refused with a typed error,
//! and none causes a panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use gpumem_core::{DescriptorError, ErrorKind};
use gpumem_host::Host;
use gpumem_runtime::{CudaArrayInterface, DescrField, Device, DeviceArray, ElementKind, ElementType};
use ndarray::{Array1, ArrayD, Dimension, Ix1, IxDyn};
use proptest::prelude::*;
use std::cell::Cell;

/// Elements of memory that descriptors point into.
const LEN: usize = 64;
/// Elements of the largest array that is copied.
const LARGEST: usize = 1 << 16;

fn number() -> impl Strategy<Value = i64> {
    let edges = [i64::MIN, i64::MIN + 1, -(1 << 62), -1, 0, 1, 1 << 31, 1 << 62, i64::MAX];
    prop_oneof![4 => -9i64..10, 2 => prop::sample::select(edges.to_vec()), 1 => any::<i64>()]
}

fn element() -> impl Strategy<Value = ElementType> {
    let kinds = [
        ElementKind::Bool,
        ElementKind::Int,
        ElementKind::UInt,
        ElementKind::Float,
        ElementKind::BFloat,
        ElementKind::Complex,
        ElementKind::Opaque,
    ];
    let any = (prop::sample::select(kinds.to_vec()), prop::sample::select(vec![0, 1, 2, 4, 8, usize::MAX]))
        .prop_map(|(kind, bytes)| ElementType::new(kind, bytes));
    prop_oneof![6 => Just(ElementType::of::<u32>()), 1 => any]
}

/// A descriptor whose address counts from `start`, unless it is absurd.
fn descriptor(start: u64) -> impl Strategy<Value = CudaArrayInterface> {
    let shape = prop::collection::vec(prop_oneof![8 => 0i64..5, 1 => number()], 0..4);
    let step = prop_oneof![6 => (-6i64..7).prop_map(|step| 4 * step), 1 => number()];
    let strides = prop::option::of(prop::collection::vec(step, 0..4));
    let address = prop_oneof![
        8 => (0u64..LEN as u64).prop_map(move |at| start + 4 * at),
        1 => any::<u64>(),
        1 => prop::sample::select(vec![0, 1, 4, u64::MAX, u64::MAX - 3]),
    ];
    let field = (element(), prop::collection::vec(any::<usize>(), 0..3))
        .prop_map(|(element, shape)| DescrField { name: String::new(), element, shape });
    let fields = prop_oneof![9 => Just(None), 1 => prop::collection::vec(field, 0..3).prop_map(Some)];
    let rare = |odds: u32| prop::bool::weighted(1.0 / f64::from(odds));
    let version = prop_oneof![8 => 0i64..4, 1 => number()];
    let stream = prop_oneof![8 => Just(None), 1 => number().prop_map(Some)];
    ((shape, element(), address, any::<bool>()), (strides, fields, rare(20), version, stream)).prop_map(
        |((shape, typestr, address, read_only), (strides, descr, mask, version, stream))| {
            CudaArrayInterface {
                shape,
                typestr,
                data: (address, read_only),
                strides,
                descr,
                mask,
                version,
                stream,
            }
        },
    )
}

/// The elements that a descriptor of `u32` describes, by their own definition: 0 to 63 from `start` on. `None` where one
/// of them is outside.
fn model(says: &CudaArrayInterface, start: u64) -> Option<ArrayD<u32>> {
    let shape: Vec<usize> = says.shape.iter().map(|&length| length as usize).collect();
    let mut packed = vec![4i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        packed[axis - 1] = packed[axis] * shape[axis] as i64;
    }
    let strides = says.strides.as_ref().unwrap_or(&packed);
    let mut inside = true;
    let elements = ArrayD::from_shape_fn(IxDyn(&shape), |index| {
        let steps = index
            .as_array_view()
            .iter()
            .zip(strides)
            .map(|(&at, &step)| at as i128 * i128::from(step))
            .sum::<i128>();
        let byte = i128::from(says.data.0) - i128::from(start) + steps;
        inside &= (0..4 * LEN as i128).contains(&byte) && byte % 4 == 0;
        (byte / 4) as u32
    });
    inside.then_some(elements)
}

fn memory() -> (Device<Host>, DeviceArray<u32, Ix1, Host>) {
    let device = Device::<Host>::open("host").unwrap();
    let memory = device.to_device(&Array1::from_iter(0..LEN as u32)).unwrap();
    (device, memory)
}

#[test]
fn descriptors_are_taken_or_refused() {
    let (device, memory) = memory();
    let start = memory.address();
    let taken = Cell::new(0);
    let mut runner = prop::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        cases: if cfg!(miri) { 20 } else { 2000 },
        ..ProptestConfig::default()
    });
    let result = runner.run(&descriptor(start), |says| {
        // SAFETY: no other code uses the memory, and it outlives the array.
        let array = unsafe { device.from_cuda_array_interface::<u32, IxDyn>(&says, ()) };
        let array = match array {
            Ok(array) => array,
            Err(error) => {
                let typed = matches!(
                    error.kind(),
                    ErrorKind::Descriptor(_) | ErrorKind::Layout(_) | ErrorKind::InvalidArgument { .. }
                );
                prop_assert!(typed, "{error:?}");
                return Ok(());
            }
        };
        prop_assert_eq!(array.is_read_only(), says.data.1);
        if array.is_empty() {
            prop_assert!(array.copy_to_host().is_ok());
            return Ok(());
        }
        if array.len() > LARGEST {
            // Elements that share memory may be more than the machine has room for.
            return Ok(());
        }
        // Both ends are in live memory of the device. Elements outside of this test's block may belong to another
        // test's array, which may be freed while they are read: the descriptor is wrong about those.
        let Some(expected) = model(&says, start) else { return Ok(()) };
        taken.set(taken.get() + 1);
        prop_assert_eq!(array.copy_to_host().unwrap(), expected);
        Ok(())
    });
    result.unwrap();
    let taken = taken.get();
    assert!(cfg!(miri) || taken > 150, "only {taken} descriptors were sensible");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 20 } else { 1000 }, ..ProptestConfig::default() })]

    #[test]
    fn type_strings_are_read_or_refused(text in "[<>=|bBiufcVOSUmMt0-9é ]{0,8}") {
        match text.parse::<ElementType>() {
            Ok(element) => prop_assert_eq!(element.to_string().parse::<ElementType>(), Ok(element)),
            Err(error) => prop_assert!(matches!(error, DescriptorError::TypeName { .. }), "{}", error),
        }
    }

    #[test]
    fn a_lent_view_describes_itself(from in 0usize..8, to in 8usize..64, step in 1isize..7, backwards: bool) {
        let (device, memory) = memory();
        let step = if backwards { -step } else { step };
        let slice = ndarray::Slice::new(from as isize, Some(to as isize), step);
        let info = ndarray::SliceInfo::<_, Ix1, Ix1>::try_from([slice.into()]).unwrap();
        let view = memory.slice(info).unwrap();
        let says = view.lend(&device.stream().unwrap()).unwrap().describe();
        prop_assert_eq!(says.validate::<u32>(), Ok(()));
        prop_assert_eq!(model(&says, memory.address()), Some(view.copy_to_host().unwrap().into_dyn()));
    }
}
