//! The photo example with good and with bad input.

use super::photo::{Options, run};
use image::{ImageFormat, RgbImage};
use std::path::Path;

fn options(folder: &Path, input: Option<&str>) -> Options {
    Options {
        device: Some("host".into()),
        input: input.map(|name| folder.join(name)),
        output: folder.join("new/sheet.png"),
        timeline: None,
    }
}

fn message(options: &Options) -> String {
    run(options).unwrap_err().to_string()
}

/// Sizes that leave no room for margins, that are long and thin, upright, odd, and larger than the sheet shows.
#[test]
fn pictures_of_any_size() {
    let folder = tempfile::tempdir().unwrap();
    for (width, height) in [(1, 1), (2, 1), (1, 3), (33, 2), (3, 50), (41, 97), (700, 30), (661, 650)] {
        let pixel = |x: u32, y: u32| image::Rgb([x as u8, y as u8, (x * 7 + y * 3) as u8]);
        let picture = RgbImage::from_fn(width, height, pixel);
        picture.save_with_format(folder.path().join("picture"), ImageFormat::Png).unwrap();
        let options = options(folder.path(), Some("picture"));
        run(&options).unwrap_or_else(|error| panic!("{width} x {height}: {error}"));
        let sheet = image::open(&options.output).unwrap().into_rgb8();
        assert!(
            sheet.width() > width.min(640) && sheet.height() > height.min(640),
            "{:?}",
            sheet.dimensions()
        );
    }
}

#[test]
fn the_sheet_is_the_same_in_every_run() {
    let folder = tempfile::tempdir().unwrap();
    let picture =
        RgbImage::from_fn(120, 90, |x, y| image::Rgb([(x * y) as u8, (x ^ y) as u8, (7 * x) as u8]));
    picture.save_with_format(folder.path().join("picture"), ImageFormat::Png).unwrap();
    let options = options(folder.path(), Some("picture"));
    run(&options).unwrap();
    let first = std::fs::read(&options.output).unwrap();
    run(&options).unwrap();
    assert!(std::fs::read(&options.output).unwrap() == first);
}

/// The example's photo and the kernel's results: a blur brings neighbours closer to each other, and sharpening drives
/// them apart.
#[test]
fn the_sample_photo_is_blurred_and_sharpened() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), None);
    run(&options).unwrap();
    let sheet = image::open(&options.output).unwrap().into_rgb8();
    assert_eq!(sheet.dimensions(), (1549, 900));
    // Cells of 312 x 205 pixels, 16 apart; the fourth row shows what the first cell of the third one does.
    let roughness = |row: u32, column: u32| -> u32 {
        let (left, top) = (16 + column * 328, 16 + row * 221);
        let pixel = |x: u32, y: u32| i32::from(sheet.get_pixel(left + x, top + y).0[1]);
        (0..205).flat_map(|y| (1..312).map(move |x| pixel(x, y).abs_diff(pixel(x - 1, y)))).sum()
    };
    let (plain, blurred, sharpened) = (roughness(2, 0), roughness(3, 0), roughness(3, 1));
    assert!(blurred * 2 < plain && sharpened > plain + plain / 4, "{blurred} {plain} {sharpened}");
}

#[test]
fn bad_input_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text.png"), "no picture at all").unwrap();
    std::fs::write(folder.path().join("empty.jpg"), "").unwrap();
    let sample = include_bytes!("../../examples/data/china.jpg");
    std::fs::write(folder.path().join("half.jpg"), &sample[..100]).unwrap();
    RgbImage::new(1, 1).save(folder.path().join("dot.png")).unwrap();
    for (name, word) in [
        ("missing.png", "cannot read"),
        ("text.png", "neither a JPEG nor a PNG"),
        ("empty.jpg", "neither a JPEG nor a PNG"),
        ("half.jpg", "cannot read"),
    ] {
        let said = message(&options(folder.path(), Some(name)));
        assert!(said.contains(word) && said.contains(name), "{name}: {said}");
    }
    let nowhere = Options { device: Some("toaster:3".into()), ..options(folder.path(), None) };
    assert!(message(&nowhere).contains("toaster"), "{}", message(&nowhere));
    let unwritable = Options { output: folder.path().to_owned(), ..options(folder.path(), Some("dot.png")) };
    assert!(message(&unwritable).contains("cannot write"), "{}", message(&unwritable));
    assert!(!folder.path().join("new").exists(), "nothing is written where something is wrong");
}
