//! Calls that the system refuses, as it does for a disk that is bad or full.

use std::{io, ops::Range};

/// From now on, this call is refused to this thread and to those that it starts, with `EIO`: on files whose numbers are at least
/// `least_file`, where it begins at these bytes of the file. A `pread64` or a `pwrite64`: their fourth argument is the offset.
pub(crate) fn refuse(call: libc::c_long, least_file: u32, offsets: Range<u32>) -> io::Result<()> {
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, equal) = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ);
    let (at_least, end) = (libc::BPF_JMP | libc::BPF_JGE, libc::BPF_RET);
    // The call's number is at byte 0, its first argument at byte 16, its fourth at byte 40.
    let mut filter = [
        step(load, 0, 0, 0),
        step(equal, call as u32, 0, 8),
        step(load, 16, 0, 0),
        step(at_least, least_file, 0, 6),
        step(load, 44, 0, 0),
        step(equal, 0, 0, 4),
        step(load, 40, 0, 0),
        step(at_least, offsets.start, 0, 2),
        step(at_least, offsets.end, 1, 0),
        step(end, libc::SECCOMP_RET_ERRNO | libc::EIO as u32, 0, 0),
        step(end, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let (yes, no, mode): (libc::c_ulong, libc::c_ulong, libc::c_ulong) =
        (1, 0, libc::SECCOMP_MODE_FILTER.into());
    // SAFETY: a program that lives until the call is over, and ends.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, no, no, no) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) != 0
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}
