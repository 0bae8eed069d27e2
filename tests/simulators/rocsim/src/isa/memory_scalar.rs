//! Loads of scalar registers.

use super::{
    environment::Environment,
    instruction::{Flow, Form, Instruction, Kind, Value, honours},
    stop::Stop,
    wave::Wave,
};

/// Scalar loads: so many words into as many scalar registers.
fn load_scalar<const WORDS: usize>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
) -> Flow {
    let [to, base, offset, ..] = &i.operands;
    let offset = match offset.value {
        Value::Constant(number) => number as i64,
        _ => i64::from(wave.read(offset)),
    };
    let address = (wave.read_pair(base) & !3).wrapping_add_signed(offset + i.modifiers.offset) & !3;
    let host = match environment.device.host(address, WORDS as u64 * 4) {
        Ok(host) => host,
        Err(cause) => {
            wave.stop = Some(Stop::new(cause, None));
            return Flow::Stop;
        }
    };
    if let Value::Scalar(register) = to.value {
        for word in 0..WORDS {
            // SAFETY: the words were looked up.
            let value = unsafe { host.cast::<u32>().add(word).read_unaligned() };
            wave.set_scalar(register.wrapping_add(word as u8), value);
        }
    }
    Flow::Next
}

/// The scalar load of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    macro_rules! form {
        ($words:literal) => {
            Form::new(&[Kind::Out($words), Kind::B64, Kind::B32], load_scalar::<$words>)
        };
    }
    let form = match name {
        "s_load_dword" => form!(1),
        "s_load_dwordx2" => form!(2),
        "s_load_dwordx4" => form!(4),
        "s_load_dwordx8" => form!(8),
        "s_load_dwordx16" => form!(16),
        _ => return None,
    };
    Some(form.honouring(honours::MEMORY))
}
