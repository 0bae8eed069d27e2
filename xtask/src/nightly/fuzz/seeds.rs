//! What the fuzzer begins with: files that are taken, where it would have to find a whole format by itself.

use anyhow::Result;
use std::{fs, path::Path};

/// Writes the corpora that targets begin with.
pub(super) fn write(root: &Path) -> Result<()> {
    let traces = fs::read_dir(root.join("crates/gpumem-memory/src/trace/import/data"))?;
    let traces = traces.map(|entry| Ok(fs::read(entry?.path())?)).collect::<Result<Vec<_>>>()?;
    let corpora = [
        ("npy_header", npy_files()),
        ("safetensors_header", safetensors_files()),
        ("safetensors_index", indices()),
        ("zip_directory", vec![archive(&npy(1, "|u1", "False", "(3, 2)"))]),
        ("traces", traces),
    ];
    for (target, seeds) in corpora {
        let folder = root.join("fuzz/corpus").join(target);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}

/// An npy file of six elements at most.
fn npy(version: u8, descr: &str, fortran: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let width = if version == 1 { 2 } else { 4 };
    let whole = (8 + width + text.len() + 1).next_multiple_of(64);
    let mut file = [b"\x93NUMPY", &[version, 0][..]].concat();
    file.extend(&(whole - 8 - width).to_le_bytes()[..width]);
    file.extend(text.as_bytes());
    file.resize(whole - 1, b' ');
    file.push(b'\n');
    file.extend([0; 6 * 16]);
    file
}

fn npy_files() -> Vec<Vec<u8>> {
    let types = [
        "|b1", "|i1", "|u1", "<i2", "<u2", "<f2", "<V2", "<i4", "<u4", "<f4", "<i8", "<u8", "<f8", "<c8",
        "<c16",
    ];
    let mut files: Vec<_> = types.into_iter().map(|descr| npy(1, descr, "False", "(3, 2)")).collect();
    files.extend([
        npy(1, "<f4", "True", "()"),
        npy(2, "<f4", "True", "(3, 2)"),
        npy(3, "=f4", "False", "(6,)"),
    ]);
    files
}

fn safetensors_files() -> Vec<Vec<u8>> {
    let texts = [
        "{}",
        r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
        r#"{"__metadata__":{"a":"b"},"x":{"dtype":"U8","shape":[2,4],"data_offsets":[0,8]},"y":{"dtype":"F16","shape":[],"data_offsets":[8,10]}}"#,
    ];
    let file = |text: &str| {
        let bytes = text.rsplit("data_offsets").next().and_then(|last| last.split([',', ']']).nth(1));
        let bytes = bytes.and_then(|end| end.parse().ok()).unwrap_or(0);
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &vec![7; bytes]].concat()
    };
    texts.into_iter().map(file).collect()
}

fn indices() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"weight_map":{}}"#,
        r#"{"metadata":{"total_size":3},"weight_map":{"x":"1.safetensors","y":"2.safetensors","z":"2.safetensors"}}"#,
    ];
    texts.into_iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A zip archive with one member, `a.npy`, which is stored.
fn archive(member: &[u8]) -> Vec<u8> {
    let name = b"a.npy";
    let (mut checksum, length) = (u32::MAX, (member.len() as u32).to_le_bytes());
    for byte in member {
        checksum ^= u32::from(*byte);
        for _ in 0..8 {
            checksum = (checksum >> 1) ^ (0xEDB8_8320 & (checksum & 1).wrapping_neg());
        }
    }
    // Version, flags, method, time, day; the checksum and the lengths; those of the name and of what follows it.
    let common = [
        &[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..],
        &(!checksum).to_le_bytes(),
        &length,
        &length,
        &[5, 0, 0, 0],
    ]
    .concat();
    let local = [b"PK\x03\x04", &common[..], name].concat();
    let entry = [b"PK\x01\x02\x14\x00", &common[..], &[0; 14], name].concat();
    let start = (local.len() + member.len()) as u32;
    let counts = [0, 0, 0, 0, 1, 0, 1, 0];
    let end =
        [b"PK\x05\x06", &counts[..], &(entry.len() as u32).to_le_bytes(), &start.to_le_bytes(), &[0; 2]]
            .concat();
    [local, member.to_vec(), entry, end].concat()
}
