//! Options of hipRTC, which are clang's, as NVRTC has them.

/// Translates options for a device of that architecture (`sm_90`).
///
/// Options that only tune AMD's code are left out. Unknown ones are passed on, so that NVRTC refuses them by name.
pub(crate) fn translate<'a>(options: impl IntoIterator<Item = &'a str>, architecture: &str) -> Vec<String> {
    let mut translated = vec![format!("--gpu-architecture={architecture}")];
    let mut options = options.into_iter();
    while let Some(option) = options.next() {
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            // One device is compiled for, and it is no AMD GPU whatever the name says.
            ("--gpu-architecture" | "--offload-arch" | "-arch", Some(_)) => {}
            ("-arch" | "--gpu-architecture" | "--offload-arch" | "-mllvm" | "-Xclang", None) => {
                options.next();
            }
            ("-std" | "--std", Some(standard)) => {
                translated.push(format!("--std={}", standard.replace("gnu++", "c++")));
            }
            ("-ffast-math", None) => translated.push("--use_fast_math".to_owned()),
            ("-ffp-contract", Some(contract)) => translated.push(format!("--fmad={}", contract != "off")),
            ("-fgpu-rdc", None) => translated.push("--relocatable-device-code=true".to_owned()),
            ("-fno-gpu-rdc", None) => translated.push("--relocatable-device-code=false".to_owned()),
            ("-g", None) => translated.push("--generate-line-info".to_owned()),
            ("-w", None) => translated.push("--disable-warnings".to_owned()),
            ("-include", None) => {
                if let Some(header) = options.next() {
                    translated.push(format!("--pre-include={header}"));
                }
            }
            // NVRTC has no other.
            ("-fno-strict-aliasing", None) => {}
            _ if tunes_amd(name) => {}
            _ => translated.push(option.to_owned()),
        }
    }
    translated
}

/// Whether an option changes at most the speed of AMD's code, or which warnings there are.
fn tunes_amd(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "-O0",
        "-O1",
        "-O2",
        "-O3",
        "-Os",
        "-Ofast",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-munsafe-fp-atomics",
        "-mno-unsafe-fp-atomics",
        "-mcumode",
        "-mno-cumode",
        "-mno-wavefrontsize64",
        "-fno-signed-zeros",
        "-fno-math-errno",
        "-fgpu-default-stream",
        "--amdgpu-kernarg-preload-count",
    ];
    NAMES.contains(&name) || name.starts_with("-Wno-") || name.starts_with("-Rpass")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_architecture(options: &[&str]) -> Vec<String> {
        let all = translate(options.iter().copied(), "sm_90");
        assert_eq!(all[0], "--gpu-architecture=sm_90");
        all[1..].to_vec()
    }

    #[test]
    fn the_architecture_is_that_of_the_device() {
        let forms: [&[&str]; 5] = [
            &["--gpu-architecture=gfx90a:sramecc+:xnack-"],
            &["--offload-arch=gfx1030"],
            &["--gpu-architecture=sm_80"],
            &["-arch", "gfx906"],
            &[],
        ];
        for options in forms {
            assert_eq!(after_architecture(options), Vec::<String>::new(), "{options:?}");
        }
    }

    #[test]
    fn options_of_clang_become_nvrtcs() {
        for (option, expected) in [
            ("-std=c++17", "--std=c++17"),
            ("--std=gnu++14", "--std=c++14"),
            ("-ffast-math", "--use_fast_math"),
            ("-ffp-contract=off", "--fmad=false"),
            ("-ffp-contract=fast", "--fmad=true"),
            ("-fgpu-rdc", "--relocatable-device-code=true"),
            ("-g", "--generate-line-info"),
            ("-DN=3", "-DN=3"),
            ("-I/include", "-I/include"),
            ("-UNDEBUG", "-UNDEBUG"),
        ] {
            assert_eq!(after_architecture(&[option]), [expected]);
        }
        assert_eq!(after_architecture(&["-include", "a.h", "-DX"]), ["--pre-include=a.h", "-DX"]);
    }

    #[test]
    fn tuning_options_are_left_out_and_unknown_ones_are_passed_on() {
        let tuning = ["-O3", "-Wno-unused", "-munsafe-fp-atomics", "-mllvm", "-amdgpu-early-inline-all=true"];
        assert_eq!(after_architecture(&tuning), Vec::<String>::new());
        assert_eq!(after_architecture(&["-fno-strict-aliasing"]), Vec::<String>::new());
        assert_eq!(after_architecture(&["-mwavefrontsize64"]), ["-mwavefrontsize64"]);
        assert_eq!(after_architecture(&["--nonsense"]), ["--nonsense"]);
    }
}
