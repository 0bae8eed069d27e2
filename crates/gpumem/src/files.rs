//! Arrays in files: npy, safetensors and raw ranges as sources of copies to a device, and arrays written to files.
//!
//! Opening a file reads its header, and checks all that it says against the rules of the format and the length of the file. A
//! [`FileView`] then is a source as any other, whole or sliced: of `to_device`, `copy_to_device` and `assign`, of devices, arrays and
//! streams. Several threads read the elements into page-locked blocks, while the device copies other blocks.
//!
//! ```
//! use gpumem::{Device, files, ndarray::{Ix1, s}};
//!
//! # let path = std::env::temp_dir().join(format!("gpumem-files-{}.npy", std::process::id()));
//! # let header = format!("{:<117}\n", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }");
//! # let elements = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
//! # std::fs::write(&path, [&b"\x93NUMPY\x01\x00\x76\x00"[..], header.as_bytes(), &elements].concat()).unwrap();
//! let device = Device::open("host")?;
//! let x = files::npy::<i32, Ix1>(&path)?;
//! let array = device.to_device(&x)?;
//! let ends = device.to_device(&x.slice(s![..;2])?)?; // reads what it needs
//! assert_eq!((array.copy_to_host()?.to_vec(), ends.copy_to_host()?.to_vec()), (vec![1, 2, 3], vec![1, 3]));
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # Formats
//!
//! | format | what is taken |
//! |---|---|
//! | npy | versions 1.0 to 3.0 with headers of up to 64 KiB, in C and Fortran order: numbers of NumPy in the byte order of this machine, `bf16` as `V2`; no records, objects, texts, times |
//! | safetensors | all types of version 0.8, with headers of up to 100 MB; floats of eight bits as `u8`, with their name in [`TensorInfo::dtype`]; floats of four and six bits as [bytes](SafeTensors::tensor_bytes) |
//! | index of safetensors | files that lie beside it |
//! | raw | any range of bytes |
//!
//! # Writing
//!
//! [`save_npy`] and [`save_safetensors`] write a temporary file beside the path, and rename it when it is whole: an error leaves what
//! was there. Arrays and views of any layout are written, packed.
//!
//! # Files that lie
//!
//! Nothing is allocated before lengths, ranges, shapes and their products have been checked: what breaks a rule is
//! [`ErrorKind::File`](crate::ErrorKind::File) with the path and the place. Beyond the reference implementation of safetensors, two
//! tensors of one name, fields that the format does not have, and more than 64 axes are refused.
//!
//! Files are read, not mapped. One that others cut or write while it is read is [`Truncated`](crate::FileFailure::Truncated) or
//! [`Changed`](crate::FileFailure::Changed), as its length and its time say. A new array is dropped then; an array that was there
//! before is `Poisoned` until it is written anew.

pub use gpumem_files::*;
