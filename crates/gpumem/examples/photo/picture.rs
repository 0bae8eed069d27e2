//! Photos as arrays of (height, width, 3) bytes, from and to files.

use super::Result;
use gpumem::ndarray::Array3;
use image::{ImageFormat, ImageReader, RgbImage};
use std::{io::Cursor, path::Path};

/// The photo that comes with the example, so that the program runs wherever it is copied to.
const SAMPLE: &[u8] = include_bytes!("../data/china.jpg");

/// Reads a JPEG or PNG, or the sample photo.
pub(crate) fn read(path: Option<&Path>) -> Result<Array3<u8>> {
    let name = path.map_or("the sample photo".into(), |path| path.display().to_string());
    let fail = |why: &dyn std::fmt::Display| format!("cannot read {name}: {why}");
    let bytes = match path {
        Some(path) => std::fs::read(path).map_err(|why| fail(&why))?,
        None => SAMPLE.to_vec(),
    };
    // By the contents: names lie.
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|why| fail(&why))?;
    if reader.format().is_none() {
        return Err(fail(&"it is neither a JPEG nor a PNG").into());
    }
    let picture = reader.decode().map_err(|why| fail(&why))?.into_rgb8();
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    if width == 0 || height == 0 {
        return Err(fail(&"it has no pixels").into());
    }
    Array3::from_shape_vec((height, width, 3), picture.into_raw()).map_err(|why| fail(&why).into())
}

/// Writes a PNG, and makes the folder for it.
pub(crate) fn write(path: &Path, pixels: &Array3<u8>) -> Result<()> {
    let fail = |why: &dyn std::fmt::Display| format!("cannot write {}: {why}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|why| fail(&why))?;
    }
    let (height, width, _) = pixels.dim();
    let bytes = pixels.as_standard_layout().iter().copied().collect();
    let (width, height) = (u32::try_from(width)?, u32::try_from(height)?);
    let picture = RgbImage::from_raw(width, height, bytes).ok_or_else(|| fail(&"its size is wrong"))?;
    picture.save_with_format(path, ImageFormat::Png).map_err(|why| fail(&why).into())
}
