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
