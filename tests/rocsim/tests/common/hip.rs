//! The part of HIP that the proof programs use.
