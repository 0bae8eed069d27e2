//! DLPack: tensors handed from library to library, with a deleter.

pub mod abi;
mod element;
mod export;
mod import;
mod tensor;

pub use tensor::DlpackTensor;
