//! Any number of ranks computes the same heat, and that of plain loops.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../examples/heat/main.rs"]
#[allow(dead_code, reason = "its main reads the command line")]
mod heat;

use gpumem::{Device, ndarray::Array2};

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
        let found = heat::spread(&device, &plate, ranks, 30).unwrap();
        assert_eq!(found, expected, "{ranks} ranks");
        assert_eq!(heat::picture(&found), heat::picture(&expected));
    }
}
