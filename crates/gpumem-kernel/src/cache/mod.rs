//! Compiled programs, kept in memory and on disk.
//!
//! The cache keeps images (cubins, code objects), never loaded programs. A program belongs to a device and is unloaded
//! with its last kernel; every equal device of every process can use an image. The key holds everything that decides
//! the compiler's output, compared byte by byte: text with the prelude, options, target, compiler.

mod disk;

use disk::Disk;
use gpumem_core::{
    Backend, CompileOptions, Compiler, DriverDevice, ErrorKind, KernelSource, Result, process::PerProcess,
};
use gpumem_runtime::internal::DeviceContext;
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};

/// Bytes of images that are kept in memory; the oldest go first.
const MEMORY_BYTES: usize = 64 << 20;

/// The key of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key(Vec<u8>);

impl Key {
    fn new(backend: &str, compiler: &Compiler, options: &CompileOptions, text: &str) -> Self {
        let mut bytes = Vec::with_capacity(text.len() + 256);
        let contract = if options.contract { "contract" } else { "" };
        let parts = [backend, &compiler.version, &compiler.target, contract];
        for part in parts.into_iter().chain(options.flags.iter().map(String::as_str)).chain([text]) {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part.as_bytes());
        }
        Self(bytes)
    }
}

/// Images in memory, the latest use last.
#[derive(Default)]
struct Recent(VecDeque<(Key, Arc<[u8]>)>);

impl Recent {
    fn get(&mut self, key: &Key) -> Option<Arc<[u8]>> {
        let at = self.0.iter().position(|(held, _)| held == key)?;
        let entry = self.0.remove(at)?;
        let image = entry.1.clone();
        self.0.push_back(entry);
        Some(image)
    }

    fn put(&mut self, key: Key, image: Arc<[u8]>) {
        self.0.retain(|(held, _)| *held != key);
        self.0.push_back((key, image));
        let bytes = |(key, image): &(Key, Arc<[u8]>)| key.0.len() + image.len();
        let mut total: usize = self.0.iter().map(bytes).sum();
        while total > MEMORY_BYTES
            && let Some(oldest) = self.0.pop_front()
        {
            total -= bytes(&oldest);
        }
    }

    fn forget(&mut self, key: &Key) {
        self.0.retain(|(held, _)| held != key);
    }
}

struct Cache {
    recent: Mutex<Recent>,
    disk: Option<Disk>,
}

/// The cache of this process: in a forked child a thread that is not there may hold the parent's lock.
fn cache() -> &'static Cache {
    static CACHE: PerProcess<Cache> =
        PerProcess::new(|| Cache { recent: Mutex::default(), disk: Disk::from_environment() });
    CACHE.get()
}

/// Compiles and loads `text`, or loads the cached image.
pub(super) fn program<B: Backend>(
    context: &DeviceContext<B>,
    text: String,
    options: &CompileOptions,
) -> Result<B::Module> {
    let compiler = match context.raw.compiler() {
        Ok(compiler) => compiler,
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
            context.counters.count_compilation();
            return context.note_loss(context.raw.compile(&KernelSource::Text(text), options));
        }
        Err(error) => return Err(error.in_operation("load")),
    };
    let kept = is_self_contained(&text, options)
        .then(|| (cache(), Key::new(context.raw.info().backend, &compiler, options, &text)));
    if let Some((cache, key)) = &kept
        && let Some(module) = found(context, cache, key, options)?
    {
        return Ok(module);
    }
    context.counters.count_compilation();
    let image: Arc<[u8]> = context.note_loss(context.raw.compile_image(&text, options))?.into();
    let module = load(context, &image, options)?;
    if let Some((cache, key)) = kept {
        if let Some(disk) = &cache.disk {
            disk.put(&key, &image);
        }
        cache.recent.lock().put(key, image);
    }
    Ok(module)
}

/// The program for a kept image. One that the driver does not take is forgotten, and compiled anew.
fn found<B: Backend>(
    context: &DeviceContext<B>,
    cache: &Cache,
    key: &Key,
    options: &CompileOptions,
) -> Result<Option<B::Module>> {
    let in_memory = cache.recent.lock().get(key);
    let image = match (in_memory, &cache.disk) {
        (Some(image), _) => image,
        (None, Some(disk)) => match disk.get(key) {
            Some(image) => {
                let image: Arc<[u8]> = image.into();
                cache.recent.lock().put(key.clone(), image.clone());
                image
            }
            None => return Ok(None),
        },
        (None, None) => return Ok(None),
    };
    match load(context, &image, options) {
        Ok(module) => {
            context.counters.count_reuse();
            Ok(Some(module))
        }
        Err(error) if matches!(error.kind(), ErrorKind::Build { .. } | ErrorKind::Unsupported { .. }) => {
            gpumem_core::tell!(warn: "a compiled kernel from the cache is not taken and compiled anew: {error}");
            cache.recent.lock().forget(key);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn load<B: Backend>(context: &DeviceContext<B>, image: &[u8], options: &CompileOptions) -> Result<B::Module> {
    context.note_loss(context.raw.compile(&KernelSource::Binary(image.to_vec()), options))
}

/// Tells whether the text and the options alone decide the output: files that a text includes may change.
fn is_self_contained(text: &str, options: &CompileOptions) -> bool {
    // A line may end anywhere, also in a word.
    let mut joined = String::with_capacity(text.len());
    for line in text.lines().map(str::trim_end) {
        match line.strip_suffix('\\') {
            Some(begin) => joined.push_str(begin),
            None => joined.extend([line, "\n"]),
        }
    }
    let reads = |word| joined.match_indices(word).any(|(at, _)| begins_directive(&joined[..at]));
    !["include", "import", "embed"].into_iter().any(reads)
        && !joined.contains(".incbin")
        && !options.flags.iter().any(|flag| reads_files(flag))
}

/// How options of NVRTC and hipRTC begin, after their dashes, that name a file, a directory to look into, or another option that may.
/// Letters alone stand for all that begin with them: `-I`, `-include`, `--imacros`, `-isystem`, `-F`, `-B`.
const READING: &[&str] = &[
    "@",
    "B",
    "F",
    "I",
    "Wa,",
    "Wp,",
    "Xarch",
    "Xassembler",
    "Xclang",
    "Xpreprocessor",
    "config",
    "create-pch",
    "cxx-isystem",
    "embed-dir",
    "fbasic-block-sections",
    "fmodule",
    "fpass-plugin",
    "fplugin",
    "fprebuilt-module",
    "fprofile",
    "fsanitize-",
    "gcc-",
    "hip-",
    "i",
    "load",
    "mlink-",
    "optf",
    "options-file",
    "pch",
    "pre-include",
    "resource-dir",
    "rocm-",
    "stdlib++-isystem",
    "sysroot",
    "use-pch",
    "use_pch",
    "working-directory",
];

/// Tells whether a compiler may read files because of the option. All compilers take one dash or two for some options.
fn reads_files(flag: &str) -> bool {
    let name = flag.trim_start_matches('-');
    READING.iter().any(|begin| name.starts_with(begin))
}

/// Tells whether the word after this text is that of a directive: between it and the `#` may be spaces and comments.
fn begins_directive(before: &str) -> bool {
    let mut before = before.trim_end();
    while let Some(comment) = before.strip_suffix("*/") {
        before = comment.rfind("/*").map_or("", |begin| &comment[..begin]).trim_end();
    }
    ["#", "%:", "__has_"].iter().any(|begin| before.ends_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(backend: &str, version: &str, target: &str, flags: &[&str], text: &str) -> Key {
        let compiler = Compiler { version: version.to_owned(), target: target.to_owned() };
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Key::new(backend, &compiler, &CompileOptions { flags, contract: false }, text)
    }

    #[test]
    fn the_key_holds_everything_that_decides_the_image() {
        let keys = [
            key("cuda", "1", "sm_90", &["-O3"], "text"),
            key("roc", "1", "sm_90", &["-O3"], "text"),
            key("cuda", "2", "sm_90", &["-O3"], "text"),
            key("cuda", "1", "sm_80", &["-O3"], "text"),
            key("cuda", "1", "sm_90", &["-O2"], "text"),
            key("cuda", "1", "sm_90", &["-O3", "-g"], "text"),
            key("cuda", "1", "sm_90", &["-O3-g"], "text"),
            key("cuda", "1", "sm_90", &[], "-O3text"),
            key("cuda", "1", "sm_90", &["-O3"], "text "),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|other| other == one), Some(at));
        }
        let compiler = Compiler { version: "1".to_owned(), target: "sm_90".to_owned() };
        let contract = CompileOptions { flags: vec!["-O3".to_owned()], contract: true };
        assert!(!keys.contains(&Key::new("cuda", &compiler, &contract, "text")));
    }

    #[test]
    fn images_of_sources_with_includes_are_not_cached() {
        let options = |flags: &[&str]| CompileOptions {
            flags: flags.iter().map(|f| (*f).to_owned()).collect(),
            ..Default::default()
        };
        // Interpreted, a text of that length takes minutes.
        let prelude = if cfg!(miri) { "int own;" } else { super::super::PRELUDE };
        assert!(is_self_contained(prelude, &options(&["--std=c++17", "-O3"])));
        for text in [
            "#include <cuda_fp16.h>",
            "#\tinclude \"x.h\"",
            "#  include <x.h>",
            "# /* from */ include <x.h>",
            "%:include <x.h>",
            "#inc\\\nlude <x.h>",
            "#inc\\ \r\nlude <x.h>",
            "const char x[] = {\n#   embed \"x\"\n};",
            "asm(\".incbin 'x'\");",
        ] {
            assert!(!is_self_contained(text, &options(&[])), "{text}");
        }
        assert!(is_self_contained("#line 1 \"embedding.rs\"\nint include = embed;", &options(&[])));
        let reading = "-I/usr/include --include-path=x -include --include=x -include-pch --include-directory=x --pre-include=y.h \
                       -imacros --imacros=x --imacros -isystem -iquote -idirafter --sysroot=x -isysroot @x -optf=x --options-file \
                       --pch -pch-dir=x --use-pch=x -Xclang -Wp,-include,x -fplugin=x --config=x --rocm-path=x -fprofile-use=x";
        for flag in reading.split_whitespace() {
            assert!(!is_self_contained("", &options(&[flag])), "{flag}");
        }
        for flag in [
            "-DI=include",
            "--use_fast_math",
            "-ftz=true",
            "--gpu-architecture=sm_90",
            "-Wall",
            "--fmad=false",
        ] {
            assert!(is_self_contained("", &options(&[flag])), "{flag}");
        }
    }

    #[test]
    fn the_memory_cache_keeps_the_latest_images() {
        let mut recent = Recent::default();
        let image: Arc<[u8]> = vec![0; MEMORY_BYTES / 4].into();
        let keys: Vec<_> = (0..5).map(|i| key("cuda", "1", "sm_90", &[], &i.to_string())).collect();
        for key in &keys[..3] {
            recent.put(key.clone(), image.clone());
        }
        assert!(recent.get(&keys[0]).is_some(), "which makes it the latest");
        recent.put(keys[3].clone(), image.clone());
        let there: Vec<_> = keys.iter().map(|key| recent.get(key).is_some()).collect();
        assert_eq!(there, [true, false, true, true, false]);
        recent.put(keys[4].clone(), vec![0; MEMORY_BYTES].into());
        assert_eq!(recent.0.len(), 0, "too large to be kept at all");
    }
}
