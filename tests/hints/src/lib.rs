//! What the compiler tells users of gpumem who go wrong. See `tests/mistakes`.
