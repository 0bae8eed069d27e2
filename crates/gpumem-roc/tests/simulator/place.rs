//! Where the simulated GPU is. Tests of other packages include this file too.

use libloading::Library;
use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// Whether AMD's disassembler is there: without it the simulated GPU runs no kernel, AMD's own included.
pub(crate) fn has_disassembler() -> bool {
    let names = ["libamd_comgr.so.2", "libamd_comgr.so.3"];
    // SAFETY: loading comgr has no preconditions. LLVM, which it has inside, cannot be loaded a second time: it stays.
    names.into_iter().any(|name| unsafe { Library::new(name) }.map(std::mem::forget).is_ok())
}

/// A folder with the simulator under the name of AMD's thunk, if it was built beside this program.
pub(crate) fn library_folder() -> io::Result<Option<PathBuf>> {
    let program = env::current_exe()?;
    let built = program.parent().unwrap_or(Path::new("."));
    let library = built.join("librocsim.so");
    if !library.exists() {
        return Ok(None);
    }
    let folder = built.join("rocsim-as-libhsakmt");
    fs::create_dir_all(&folder)?;
    #[cfg(unix)]
    {
        let link = folder.join("libhsakmt.so.1");
        if fs::read_link(&link).ok().as_ref() != Some(&library) {
            // Renamed into place: other tests, of this program and of others, do the same and use it.
            let own = folder.join(format!("{}.{:?}.link", std::process::id(), std::thread::current().id()));
            std::os::unix::fs::symlink(&library, &own)?;
            fs::rename(own, link)?;
        }
    }
    Ok(Some(folder))
}
