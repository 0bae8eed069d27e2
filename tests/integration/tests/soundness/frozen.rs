//! Frozen arrays.

use super::device;
use gpumem_core::ErrorKind;

#[test]
fn what_is_lent_to_the_host_is_not_frozen() {
    let device = device();
    let mut array = device.device_array::<f32, _>(4).unwrap();
    for loan in [array.lend_to_host().unwrap(), array.lend_mut_to_host().unwrap()] {
        let Err((refused, error)) = array.freeze() else { panic!("others may write what was frozen") };
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
        array = refused;
        drop(loan);
    }
    assert!(array.freeze().is_ok());
}

#[test]
fn a_use_that_was_refused_keeps_nothing() {
    let device = device();
    let frozen = device.to_device(&[1.0f32, 2.0]).unwrap().freeze().map_err(|(_, error)| error).unwrap();
    let mut outside = device.device_array::<f32, _>(2).unwrap();
    let graph = device.record((), |stream, ()| {
        assert!(stream.copy_to_device(&mut outside, &frozen).is_err());
        Ok(())
    });
    assert!(frozen.try_into_array().is_ok(), "a graph that does not use the array keeps it");
    graph.unwrap().launch(&device.stream().unwrap(), ()).unwrap();
}
