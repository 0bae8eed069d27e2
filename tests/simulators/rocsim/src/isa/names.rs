//! Names of instructions that have changed: those since gfx11 and gfx12, as the ones before.

/// Names as a whole, and the older ones.
const RENAMED: &[(&str, &str)] = &[
    ("s_and_not0_saveexec_b32", "s_andn1_saveexec_b32"),
    ("s_and_not0_saveexec_b64", "s_andn1_saveexec_b64"),
    ("s_and_not1_b32", "s_andn2_b32"),
    ("s_and_not1_b64", "s_andn2_b64"),
    ("s_and_not1_saveexec_b32", "s_andn2_saveexec_b32"),
    ("s_and_not1_saveexec_b64", "s_andn2_saveexec_b64"),
    ("s_or_not0_saveexec_b32", "s_orn1_saveexec_b32"),
    ("s_or_not0_saveexec_b64", "s_orn1_saveexec_b64"),
    ("s_or_not1_b32", "s_orn2_b32"),
    ("s_or_not1_b64", "s_orn2_b64"),
    ("s_or_not1_saveexec_b32", "s_orn2_saveexec_b32"),
    ("s_or_not1_saveexec_b64", "s_orn2_saveexec_b64"),
    ("s_clz_i32_u32", "s_flbit_i32_b32"),
    ("s_clz_i32_u64", "s_flbit_i32_b64"),
    ("s_ctz_i32_b32", "s_ff1_i32_b32"),
    ("s_ctz_i32_b64", "s_ff1_i32_b64"),
    ("s_add_co_i32", "s_add_i32"),
    ("s_add_co_u32", "s_add_u32"),
    ("s_add_co_ci_u32", "s_addc_u32"),
    ("s_sub_co_i32", "s_sub_i32"),
    ("s_sub_co_u32", "s_sub_u32"),
    ("s_sub_co_ci_u32", "s_subb_u32"),
    ("s_addk_co_i32", "s_addk_i32"),
    ("v_clz_i32_u32", "v_ffbh_u32"),
    ("v_cls_i32", "v_ffbh_i32"),
    ("v_ctz_i32_b32", "v_ffbl_b32"),
    ("v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"),
    ("v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"),
    ("v_mad_co_u64_u32", "v_mad_u64_u32"),
    ("v_mad_co_i64_i32", "v_mad_i64_i32"),
    ("v_min_num_f32", "v_min_f32"),
    ("v_max_num_f32", "v_max_f32"),
    ("v_min_num_f64", "v_min_f64"),
    ("v_max_num_f64", "v_max_f64"),
    ("v_med3_num_f32", "v_med3_f32"),
];

/// Loads and stores after the name of their memory, which is any but a group's.
const MOVES: &[(&str, &str)] = &[
    ("load_b32", "load_dword"),
    ("load_b64", "load_dwordx2"),
    ("load_b96", "load_dwordx3"),
    ("load_b128", "load_dwordx4"),
    ("load_b256", "load_dwordx8"),
    ("load_b512", "load_dwordx16"),
    ("load_u8", "load_ubyte"),
    ("load_i8", "load_sbyte"),
    ("load_u16", "load_ushort"),
    ("load_i16", "load_sshort"),
    ("load_d16_u8", "load_ubyte_d16"),
    ("load_d16_i8", "load_sbyte_d16"),
    ("load_d16_b16", "load_short_d16"),
    ("load_d16_hi_u8", "load_ubyte_d16_hi"),
    ("load_d16_hi_i8", "load_sbyte_d16_hi"),
    ("load_d16_hi_b16", "load_short_d16_hi"),
    ("store_b8", "store_byte"),
    ("store_b16", "store_short"),
    ("store_b32", "store_dword"),
    ("store_b64", "store_dwordx2"),
    ("store_b96", "store_dwordx3"),
    ("store_b128", "store_dwordx4"),
    ("store_d16_hi_b8", "store_byte_d16_hi"),
    ("store_d16_hi_b16", "store_short_d16_hi"),
];

/// Beginnings of names on the memory of a group; the longer ones come first.
const SHARED: &[(&str, &str)] = &[
    ("load_2addr_stride64_", "read2st64_"),
    ("load_2addr_", "read2_"),
    ("load_", "read_"),
    ("store_2addr_stride64_", "write2st64_"),
    ("store_2addr_", "write2_"),
    ("storexchg_", "wrxchg_"),
    ("store_", "write_"),
];

fn renamed<'a>(table: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    table.iter().find_map(|(new, old)| (*new == name).then_some(*old))
}

/// An atomic without the type of its operands, which is said in other ways.
fn atomic(name: &str) -> Option<String> {
    let (operation, kind) = name.strip_prefix("atomic_")?.rsplit_once('_')?;
    let (letter, wide) = match kind {
        "b32" | "u32" | "i32" => (kind.get(..1)?, ""),
        "b64" | "u64" | "i64" => (kind.get(..1)?, "_x2"),
        "f32" | "f64" => {
            let operation = operation.strip_suffix("_num")?;
            return Some(format!("atomic_{operation}_{kind}"));
        }
        _ => return None,
    };
    let sign = match (operation, letter) {
        ("min" | "max", "i") => "s",
        ("min" | "max", "u") => "u",
        _ => "",
    };
    Some(format!("atomic_{sign}{operation}{wide}"))
}

/// The name that an instruction had before gfx11; other names as they are.
pub(super) fn older(name: &str) -> String {
    let moved = || {
        let (memory, rest) = name.split_once('_')?;
        let rest = match memory {
            "ds" => {
                let change = |(new, old): &(&str, &str)| Some(format!("{old}{}", rest.strip_prefix(new)?));
                SHARED.iter().find_map(change)?
            }
            "global" | "flat" | "scratch" | "buffer" | "s" => {
                renamed(MOVES, rest).map(str::to_owned).or_else(|| atomic(rest))?
            }
            _ => return None,
        };
        Some(format!("{memory}_{rest}"))
    };
    renamed(RENAMED, name).map(str::to_owned).or_else(moved).unwrap_or_else(|| name.to_owned())
}

/// All newer names in the tables, loads and stores without the name of their memory.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    RENAMED.iter().chain(MOVES).chain(ONE_LANE).map(|(newer, _)| *newer)
}

/// Scalar instructions on numbers, and the vector instruction that does the same in one lane.
const ONE_LANE: &[(&str, &str)] = &[
    ("s_add_f32", "v_add_f32"),
    ("s_sub_f32", "v_sub_f32"),
    ("s_mul_f32", "v_mul_f32"),
    ("s_fmac_f32", "v_fmac_f32"),
    ("s_fmaak_f32", "v_fmaak_f32"),
    ("s_fmamk_f32", "v_fmamk_f32"),
    ("s_min_num_f32", "v_min_f32"),
    ("s_max_num_f32", "v_max_f32"),
    ("s_trunc_f32", "v_trunc_f32"),
    ("s_floor_f32", "v_floor_f32"),
    ("s_ceil_f32", "v_ceil_f32"),
    ("s_rndne_f32", "v_rndne_f32"),
    ("s_cvt_f32_f16", "v_cvt_f32_f16"),
    ("s_cvt_f32_u32", "v_cvt_f32_u32"),
    ("s_cvt_f32_i32", "v_cvt_f32_i32"),
    ("s_cvt_u32_f32", "v_cvt_u32_f32"),
    ("s_cvt_i32_f32", "v_cvt_i32_f32"),
    ("v_s_rcp_f32", "v_rcp_f32"),
    ("v_s_rsq_f32", "v_rsq_f32"),
    ("v_s_sqrt_f32", "v_sqrt_f32"),
];

/// The vector instruction that compares in one lane what a scalar one compares: numbers.
pub(super) fn compares_in_one_lane(name: &str) -> Option<String> {
    let relation = name.strip_prefix("s_cmp_").filter(|rest| rest.ends_with("_f32"))?;
    Some(format!("v_cmp_{relation}"))
}

/// The vector instruction that does in one lane what a scalar one does.
pub(super) fn in_one_lane(name: &str) -> Option<&'static str> {
    renamed(ONE_LANE, name)
}
