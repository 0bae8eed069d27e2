//! Any number of ranks computes the same heat, and that of plain loops.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../examples/heat/main.rs"]
#[allow(dead_code, reason = "its main reads the command line")]
mod heat;

use gpumem::{Device, ndarray::Array2};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

fn loops(plate: &Array2<f32>, steps: usize) -> Array2<f32> {
    let (mut before, (rows, columns)) = (plate.clone(), plate.dim());
    for _ in 0..steps {
        let mut after = before.clone();
        for y in 1..rows - 1 {
            for x in 1..columns - 1 {
                let vertical = before[[y - 1, x]] + before[[y + 1, x]];
                after[[y, x]] = 0.25 * (vertical + (before[[y, x - 1]] + before[[y, x + 1]]));
            }
        }
        before = after;
    }
    before
}

#[test]
fn any_number_of_ranks_computes_the_same_heat() {
    let device = Device::open("host").unwrap();
    let plate = heat::plate(24);
    let expected = loops(&plate, 30);
    assert!(expected != plate);
    for ranks in [1, 2, 3, 4, 24] {
        let found = heat::spread(&vec![device.clone(); ranks], &plate, 30).unwrap();
        assert_eq!(found, expected, "{ranks} ranks");
        assert_eq!(heat::picture(&found), heat::picture(&expected));
    }
}

/// The example beside this test, as cargo builds it.
fn example() -> PathBuf {
    let tests = env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples/heat").with_extension(env::consts::EXE_EXTENSION)
}

#[test]
fn processes_of_a_launcher_write_the_picture_of_one_rank() {
    let library = env::var_os("GPUMEM_MPI").filter(|value| !value.is_empty());
    let launcher = library.as_deref().and_then(|library| Path::new(library).ancestors().nth(2));
    let launcher = launcher.map(|root| root.join("bin/mpiexec")).filter(|file| file.is_file());
    let Some(launcher) = launcher else {
        eprintln!("skipped: GPUMEM_MPI names no library with mpiexec beside it");
        return;
    };
    let example = example();
    if !example.is_file() {
        eprintln!("skipped: {} is not built", example.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut pictures = Vec::new();
    for (name, mut command) in [("threads", Command::new(&example)), ("processes", Command::new(launcher))] {
        let output = folder.path().join(name).with_extension("png");
        if name == "processes" {
            command.args(["-n", "4"]).arg(&example);
        }
        command.args(["--size", "50", "--steps", "40", "--output"]).arg(&output);
        let done = command.output().unwrap();
        let text =
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{text}");
        assert!(text.contains(if name == "processes" { "4 ranks" } else { "1 ranks" }), "{text}");
        pictures.push(std::fs::read(output).unwrap());
    }
    assert!(pictures[0] == pictures[1], "the pictures differ");
}
