//! The operations of waves that kernels can call.

/// Operations of a wave on one value, and whether they take a lane or a distance too.
pub(crate) const WAVE: [(&str, bool); 11] = [
    ("shuffle", true),
    ("shuffle_up", true),
    ("shuffle_down", true),
    ("shuffle_xor", true),
    ("wave_ballot", false),
    ("wave_any", false),
    ("wave_all", false),
    ("wave_sum", false),
    ("wave_min", false),
    ("wave_max", false),
    ("wave_scan", false),
];
