//! The compiler's messages for common mistakes with gpumem. See `tests/mistakes`.
