//! Branches, barriers, waits, and other control of a wave.

use super::{
    instruction::{Flow, Form, Instruction, Kind, Value},
    mode::Mode,
    stop::{Cause, Stop},
    text::{Text, Written, scalar},
    wave::{PRIVATE_APERTURE, SHARED_APERTURE, Wave},
};
use crate::engine;

/// Makes a new execution mask out of a source and the old one, which is saved.
#[inline(always)]
fn save<const WIDE: bool>(wave: &mut Wave, i: &Instruction, f: impl Fn(u64, u64) -> u64) -> Flow {
    let (source, old) = if WIDE {
        (wave.read_pair(&i.operands[1]), wave.pair(scalar::EXEC))
    } else {
        (wave.read(&i.operands[1]).into(), wave.scalars[usize::from(scalar::EXEC)].into())
    };
    let new = f(source, old);
    if WIDE {
        wave.write_pair(&i.operands[0], old);
        wave.set_pair(scalar::EXEC, new);
        wave.set_scc(new != 0);
    } else {
        wave.write(&i.operands[0], old as u32);
        wave.set_scalar(scalar::EXEC, new as u32);
        wave.set_scc(new as u32 != 0);
    }
    Flow::Next
}

macro_rules! saves {
    ($name:expr, $($operation:literal $f:expr,)*) => {
        match $name {
            $(concat!("s_", $operation, "_saveexec_b32") => Form::new(
                &[Kind::Out(1), Kind::B32], |wave, i, _| save::<false>(wave, i, $f)),
            concat!("s_", $operation, "_saveexec_b64") => Form::new(
                &[Kind::Out(2), Kind::B64], |wave, i, _| save::<true>(wave, i, $f)),)*
            _ => return None,
        }
    };
}

fn branch(taken: bool) -> Flow {
    if taken { Flow::Branch } else { Flow::Next }
}

/// Stops at barriers other than that of all waves of the group.
fn whole_group(wave: &mut Wave, i: &Instruction, number: u32) -> Flow {
    if wave.read(&i.operands[0]) == number {
        return Flow::Next;
    }
    wave.stop = Some(Stop::new(Cause::Unknown("a barrier that is not the whole group's"), None));
    Flow::Stop
}

/// Whether a message that is answered is one of the two that are known: a time, and the queue's doorbell.
pub(super) fn is_answered(text: &Text) -> bool {
    let message = text.field("sendmsg").and_then(|words| words.first().copied());
    match text.name.as_str() {
        "s_sendmsg_rtn_b32" => message == Some("MSG_RTN_GET_DOORBELL"),
        "s_sendmsg_rtn_b64" => message == Some("MSG_RTN_GET_REALTIME"),
        _ => true,
    }
}

/// Hardware registers that can be read and written.
pub(super) mod hardware {
    pub(crate) const MODE: u32 = 1;
    pub(crate) const MEMORY_BASES: u32 = 2;
    /// Where private memory begins. It has no address here.
    pub(crate) const PRIVATE_MEMORY: u32 = 3;
}

/// The operand of an instruction on a hardware register: its number, the first bit, the number of bits.
fn hardware_field(i: &Instruction) -> (u32, u32, u32) {
    (i.extra & 0xff, i.extra >> 8 & 0xff, i.extra >> 16)
}

fn ones(count: u32) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}

fn set_hardware(wave: &mut Wave, i: &Instruction) -> Flow {
    let (register, start, count) = hardware_field(i);
    if register == hardware::PRIVATE_MEMORY {
        return Flow::Next;
    }
    if register != hardware::MODE {
        wave.stop = Some(Stop::new(Cause::Unknown("a hardware register that is not known"), None));
        return Flow::Stop;
    }
    let mask = ones(count) << start;
    let value = wave.read(&i.operands[0]) << start & mask;
    wave.mode = Mode::from_bits(wave.mode.bits() & !mask | value);
    Flow::Next
}

fn get_hardware(wave: &mut Wave, i: &Instruction) -> Flow {
    let (register, start, count) = hardware_field(i);
    let value = match register {
        hardware::MODE => wave.mode.bits(),
        hardware::MEMORY_BASES => SHARED_APERTURE & 0xffff_0000 | PRIVATE_APERTURE >> 16,
        _ => {
            wave.stop = Some(Stop::new(Cause::Unknown("a hardware register that is not known"), None));
            return Flow::Stop;
        }
    };
    wave.write(&i.operands[0], value >> start & ones(count));
    Flow::Next
}

/// The limits of a wait, one byte for each counter of [`Checks`](super::check::Checks). 255 is no limit.
pub(super) fn wait_limits(text: &Text) -> Option<u32> {
    let field = |name: &str| -> u32 {
        text.field(name).and_then(|numbers| numbers.first()?.parse().ok()).unwrap_or(255)
    };
    let number = || match text.operands.last()?.written {
        Written::Integer(number) => u32::try_from(number).ok(),
        Written::Literal(number) => Some(number),
        _ => None,
    };
    let limits = |vector: u32, scalar: u32, stores: u32, shared: u32| {
        u32::from_le_bytes([vector, scalar, stores, shared].map(|limit| limit.min(255) as u8))
    };
    Some(match text.name.as_str() {
        "s_waitcnt" => limits(field("vmcnt"), field("lgkmcnt"), 255, 255),
        "s_waitcnt_vmcnt" | "s_wait_loadcnt" => limits(number()?, 255, 255, 255),
        "s_waitcnt_lgkmcnt" | "s_wait_kmcnt" => limits(255, number()?, 255, 255),
        "s_waitcnt_vscnt" | "s_wait_storecnt" => limits(255, 255, number()?, 255),
        "s_wait_dscnt" => limits(255, 255, 255, number()?),
        "s_wait_loadcnt_dscnt" => limits(number()? >> 8, 255, 255, number()? & 0x3f),
        "s_wait_storecnt_dscnt" => limits(255, 255, number()? >> 8, number()? & 0x3f),
        _ => return None,
    })
}

/// Encodes a hardware register's name, first bit and number of bits for [`hardware_field`].
pub(super) fn hardware_bits(text: &Text) -> Option<u32> {
    let field = text.field("hwreg")?;
    let register = match *field.first()? {
        "HW_REG_MODE" => hardware::MODE,
        "HW_REG_SH_MEM_BASES" => hardware::MEMORY_BASES,
        "HW_REG_FLAT_SCR_LO" | "HW_REG_FLAT_SCR_HI" if text.name != "s_getreg_b32" => {
            hardware::PRIVATE_MEMORY
        }
        _ => return None,
    };
    let number = |index: usize, otherwise: u32| match field.get(index) {
        Some(text) => text.parse().ok(),
        None => Some(otherwise),
    };
    Some(register | number(1, 0)? << 8 | number(2, 32)? << 16)
}

fn mode_bits(wave: &mut Wave, i: &Instruction, start: u32) -> Flow {
    let mask = 0xf << start;
    let value = wave.read(&i.operands[0]) << start & mask;
    wave.mode = Mode::from_bits(wave.mode.bits() & !mask | value);
    Flow::Next
}

/// Tells whether the instruction only waits for pending operations.
pub(super) fn is_wait(name: &str) -> bool {
    matches!(
        name,
        "s_waitcnt"
            | "s_waitcnt_vmcnt"
            | "s_waitcnt_lgkmcnt"
            | "s_waitcnt_vscnt"
            | "s_wait_loadcnt"
            | "s_wait_storecnt"
            | "s_wait_dscnt"
            | "s_wait_kmcnt"
            | "s_wait_loadcnt_dscnt"
            | "s_wait_storecnt_dscnt"
    )
}

/// Whether the instruction writes back or invalidates vector caches. Memory here has none.
pub(super) fn is_about_caches(name: &str) -> bool {
    matches!(
        name,
        "buffer_gl0_inv"
            | "buffer_gl1_inv"
            | "buffer_wbinvl1"
            | "buffer_wbinvl1_vol"
            | "buffer_wbl2"
            | "buffer_invl2"
            | "buffer_inv"
            | "global_inv"
            | "global_wb"
            | "global_wbinv"
    )
}

/// Whether nothing is to be done, because memory here is in order and coherent, or because it is about time.
fn is_nothing(name: &str) -> bool {
    matches!(
        name,
        "s_nop"
            | "s_clause"
            | "s_inst_prefetch"
            | "s_setprio"
            | "s_sendmsg"
            | "s_waitcnt_depctr"
            | "s_ttracedata"
            | "s_dcache_wb"
            | "s_dcache_inv"
            | "s_dcache_wb_vol"
            | "s_dcache_inv_vol"
            | "s_icache_inv"
            | "s_gl1_inv"
            | "s_code_end"
            | "s_delay_alu"
            | "s_set_inst_prefetch_distance"
            | "s_wait_alu"
    )
}

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    if is_nothing(name) || is_wait(name) || is_about_caches(name) {
        return Some(Form::new(&[], |_, _, _| Flow::Next));
    }
    if let Some(form) = branches(name) {
        return Some(form);
    }
    Some(match name {
        "s_endpgm" | "s_endpgm_saved" => Form::new(&[], |_, _, _| Flow::End),
        "s_barrier" => Form::new(&[], |_, _, _| Flow::Barrier),
        // The two halves of a barrier: a wave says that it has come, and later waits for the others.
        "s_barrier_signal" => Form::new(&[Kind::B32], |wave, i, _| {
            wave.signalled = true;
            whole_group(wave, i, u32::MAX)
        }),
        "s_barrier_wait" => Form::new(&[Kind::B32], |wave, i, _| {
            if !std::mem::take(&mut wave.signalled) {
                let why = "a wait for a barrier that the wave has not signalled";
                wave.stop = Some(Stop::new(Cause::Unknown(why), None));
                return Flow::Stop;
            }
            match whole_group(wave, i, 0xffff) {
                Flow::Next => Flow::Barrier,
                flow => flow,
            }
        }),
        "s_sleep" => Form::new(&[], |_, _, _| Flow::Yield),
        "s_trap" | "s_sethalt" => Form::new(&[], |wave, _, _| {
            wave.stop = Some(Stop::new(Cause::Trap, None));
            Flow::Stop
        }),
        "s_getpc_b64" => Form::new(&[Kind::Out(2)], |wave, i, _| {
            wave.write_pair(&i.operands[0], i.address + i.bytes);
            Flow::Next
        }),
        "s_setpc_b64" => Form::new(&[Kind::B64], |wave, i, _| {
            wave.goes_to = wave.read_pair(&i.operands[0]);
            Flow::Jump
        }),
        "s_swappc_b64" => Form::new(&[Kind::Out(2), Kind::B64], |wave, i, _| {
            wave.goes_to = wave.read_pair(&i.operands[1]);
            wave.write_pair(&i.operands[0], i.address + i.bytes);
            Flow::Jump
        }),
        "s_memtime" | "s_memrealtime" => Form::new(&[Kind::Out(2)], |wave, i, _| {
            wave.write_pair(&i.operands[0], engine::clock());
            Flow::Next
        }),
        // Only the trap handler looks at the number of the doorbell.
        "s_sendmsg_rtn_b32" => Form::new(&[Kind::Out(1)], |wave, i, _| {
            wave.write(&i.operands[0], 0);
            Flow::Next
        }),
        "s_sendmsg_rtn_b64" => Form::new(&[Kind::Out(2)], |wave, i, _| {
            wave.write_pair(&i.operands[0], engine::clock());
            Flow::Next
        }),
        "s_getreg_b32" => Form::new(&[Kind::Out(1)], |wave, i, _| get_hardware(wave, i)),
        "s_setreg_b32" | "s_setreg_imm32_b32" => Form::new(&[Kind::B32], |wave, i, _| set_hardware(wave, i)),
        "s_round_mode" => Form::new(&[Kind::B32], |wave, i, _| mode_bits(wave, i, 0)),
        "s_denorm_mode" => Form::new(&[Kind::B32], |wave, i, _| mode_bits(wave, i, 4)),
        _ => {
            return Some(saves!(
                name,
                "and" | source,
                exec | source & exec,
                "or" | source,
                exec | source | exec,
                "xor" | source,
                exec | source ^ exec,
                "andn1" | source,
                exec | !source & exec,
                "andn2" | source,
                exec | source & !exec,
                "orn1" | source,
                exec | !source | exec,
                "orn2" | source,
                exec | source | !exec,
                "nand" | source,
                exec | !(source & exec),
                "nor" | source,
                exec | !(source | exec),
                "xnor" | source,
                exec | !(source ^ exec),
            ));
        }
    })
}

fn branches(name: &str) -> Option<Form> {
    Some(Form::new(
        &[],
        match name {
            "s_branch" => |_, _, _| Flow::Branch,
            "s_cbranch_scc0" => |wave, _, _| branch(!wave.scc()),
            "s_cbranch_scc1" => |wave, _, _| branch(wave.scc()),
            "s_cbranch_vccz" => |wave, _, _| branch(wave.mask_register(scalar::VCC) == 0),
            "s_cbranch_vccnz" => |wave, _, _| branch(wave.mask_register(scalar::VCC) != 0),
            "s_cbranch_execz" => |wave, _, _| branch(wave.exec() == 0),
            "s_cbranch_execnz" => |wave, _, _| branch(wave.exec() != 0),
            _ => return None,
        },
    ))
}

/// Whether the instruction may continue somewhere else than at the next one; and whether it may at the next one.
pub(super) fn leads(name: &str) -> (bool, bool) {
    match name {
        "s_branch" => (true, false),
        "s_setpc_b64" | "s_endpgm" | "s_endpgm_saved" | "s_trap" => (false, false),
        _ => (name.starts_with("s_cbranch_"), true),
    }
}

/// The mask register that an instruction reads or writes without saying so.
pub(super) fn implied(name: &str) -> Option<Value> {
    match name {
        "v_div_fmas_f32" | "v_div_fmas_f64" => Some(Value::Scalar(scalar::VCC)),
        _ => None,
    }
}
