//! Loads of scalar registers.

use super::{
    environment::Environment,
    instruction::{Flow, Form, Instruction, Kind, Operand, Value, honours},
    stop::Stop,
    wave::Wave,
};

fn offset_of(wave: &Wave, operand: &Operand) -> i64 {
    match operand.value {
        Value::Constant(number) => number as i64,
        _ => i64::from(wave.read(operand)),
    }
}

/// Scalar loads: so many words into as many scalar registers.
fn load_scalar<const WORDS: usize>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
) -> Flow {
    let [to, base, offset, ..] = &i.operands;
    let offset = offset_of(wave, offset) + i.modifiers.offset;
    let address = (wave.read_pair(base) & !3).wrapping_add_signed(offset) & !3;
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

/// Scalar loads of one or two bytes, which may lie anywhere.
fn load_part<const BYTES: usize, const SIGNED: bool>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
) -> Flow {
    let [to, base, offset, ..] = &i.operands;
    let address = wave.read_pair(base).wrapping_add_signed(offset_of(wave, offset) + i.modifiers.offset);
    match environment.device.host(address, BYTES as u64) {
        Ok(host) => {
            // SAFETY: the bytes were looked up.
            let value = unsafe {
                match (BYTES, SIGNED) {
                    (1, false) => u32::from(host.read()),
                    (1, true) => i32::from(host.cast::<i8>().read()) as u32,
                    (_, false) => u32::from(host.cast::<u16>().read_unaligned()),
                    (_, true) => i32::from(host.cast::<i16>().read_unaligned()) as u32,
                }
            };
            wave.write(to, value);
            Flow::Next
        }
        Err(cause) => {
            wave.stop = Some(Stop::new(cause, None));
            Flow::Stop
        }
    }
}

/// The scalar load of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    macro_rules! form {
        ($words:literal) => {
            Form::new(&[Kind::Out($words), Kind::B64, Kind::B32], load_scalar::<$words>)
        };
    }
    let part = |op| Form::new(&[Kind::Out(1), Kind::B64, Kind::B32], op);
    let form = match name {
        "s_load_ubyte" => part(load_part::<1, false>),
        "s_load_sbyte" => part(load_part::<1, true>),
        "s_load_ushort" => part(load_part::<2, false>),
        "s_load_sshort" => part(load_part::<2, true>),
        "s_load_dword" => form!(1),
        "s_load_dwordx2" => form!(2),
        "s_load_dwordx3" => form!(3),
        "s_load_dwordx4" => form!(4),
        "s_load_dwordx8" => form!(8),
        "s_load_dwordx16" => form!(16),
        _ => return None,
    };
    Some(form.honouring(honours::MEMORY))
}
