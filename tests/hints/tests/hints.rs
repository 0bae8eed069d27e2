//! The compiler's messages for common mistakes: pinned, and short.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use gpumem::{
    Device, Element,
    bytemuck::{Pod, Zeroable},
    half::f16,
    num_complex::Complex,
};
use std::{fs, path::Path};

/// The lines that one mistake may show. Lines that only draw the margin do not count, nor do the notes below.
const MOST_LINES: usize = 10;

/// Notes that show a line of the library, or where the test asks for warnings.
const OTHER_PLACES: [&str; 3] =
    ["note: required by a bound in", "note: method defined here", "note: the lint level is defined here"];

const MISTAKES: &str = "tests/mistakes";

#[test]
fn messages_are_as_pinned() {
    if gpumem_hints::has_pinned_messages() {
        trybuild::TestCases::new().compile_fail(format!("{MISTAKES}/*.rs"));
    }
}

#[test]
fn each_mistake_shows_few_lines_and_names_that_users_write() {
    let mut files = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(MISTAKES)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "stderr") {
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&path).unwrap();
        for mistake in text.split("\n\n") {
            let lines = lines_about_the_program(mistake);
            assert!(lines.len() <= MOST_LINES, "{}: {} lines\n{mistake}", path.display(), lines.len());
            for hidden in ["gpumem_runtime", "gpumem_core", "gpumem_kernel::simt", "bytemuck::pod"] {
                let names = lines.iter().any(|line| line.contains(hidden));
                assert!(!names, "{} names items that users cannot write\n{mistake}", path.display());
            }
        }
    }
    assert!(files >= 10, "{files} files are pinned");
}

fn lines_about_the_program(mistake: &str) -> Vec<&str> {
    let mut elsewhere = false;
    let mut lines = Vec::new();
    for line in mistake.lines() {
        let begins_a_part = ["error", "note", "help"].iter().any(|word| line.starts_with(word));
        if begins_a_part || line.trim_start().starts_with('=') {
            elsewhere = OTHER_PLACES.iter().any(|note| line.starts_with(note));
        }
        if !elsewhere && !line.trim_matches([' ', '|']).is_empty() {
            lines.push(line);
        }
    }
    lines
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[bytemuck(crate = "gpumem::bytemuck")]
#[repr(C)]
struct Particle {
    place: [f32; 3],
    mass: f16,
    charge: i16,
    phase: Complex<f32>,
}

#[test]
fn records_are_derived_through_the_re_export() {
    let device = Device::open("host").unwrap();
    let phase = Complex::new(1.0, -1.0);
    let one = Particle { place: [1.0, 2.0, 3.0], mass: f16::from_f32(0.5), charge: -1, phase };
    let array = device.to_device(&[one, Particle::zeroed()]).unwrap();
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [one, Particle::zeroed()]);
    fn is_element<T: Element>() {}
    is_element::<Particle>();
}
