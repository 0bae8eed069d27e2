//! Programs of kernels: compiled, kept, shipped, refused.

use super::tools::load;
use crate::{Lab, Level, Stop, Verdict, refused, skip};
use gpumem_core::{Backend, Barrier, BarrierPoint, DriverDevice, Error, ErrorKind, Lowering};
use gpumem_kernel::{KernelDef, Out, Slice, SliceMut, WorkItemIds, config_for_items};
use std::time::{SystemTime, UNIX_EPOCH};

cases! { Level::Kernel;
    sources_are_compiled_once,
    images_are_loaded_instead_of_sources,
    programs_for_other_devices_are_refused,
    compilers_name_the_sources_own_lines,
    parameters_are_checked_by_the_compiler,
    kernels_of_other_names_are_not_found,
    contraction_is_a_program_of_its_own,
}

type Numbers = (SliceMut<u32>,);

const SOURCE: &str = "GPUMEM_KERNEL numbers(gpumem::slice<gpumem::u32> y) {
    gpumem::u32 i = (gpumem::u32)gpumem::global_id(0);
    if (i < y.size()) y[i] = 3 * i;
}";

fn declaration() -> KernelDef<Numbers> {
    // SAFETY: each work-item writes its own element.
    unsafe { KernelDef::<Numbers>::new("numbers") }.host_loop(|ids: &WorkItemIds<'_>, (y,): &Numbers| {
        let i = ids.global_id(0);
        if i < y.len() {
            y.set(i, 3 * i as u32);
        }
    })
}

fn works<B: Backend>(lab: &Lab<B>, kernel: &gpumem_kernel::Kernel<Numbers, B>) -> Verdict {
    let mut numbers = [0u32; 100];
    kernel.launch(
        &lab.device().stream()?,
        &config_for_items([100, 1, 1], [64, 1, 1]),
        (Out(&mut numbers),),
    )?;
    assert!(numbers.iter().enumerate().all(|(i, number)| *number == 3 * i as u32));
    Ok(())
}

/// The reason to skip a case about compilers: bodies of the host need none.
fn needs_source<B: Backend>(lab: &Lab<B>) -> Verdict {
    match lab.device().barrier().lowering(BarrierPoint::Wave) {
        Lowering::Suspend => skip("kernels are bodies of the host here"),
        Lowering::Source(_) => load(lab, &declaration().source(SOURCE)).map(drop),
    }
}

fn sources_are_compiled_once<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs_source(lab)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let fresh = declaration().source(&format!("{SOURCE} // {now}"));
    let before = lab.device().counters();
    for _ in 0..3 {
        works(lab, &fresh.load(lab.device())?)?;
    }
    let after = lab.device().counters();
    let counts = (after.compilations - before.compilations, after.reuses - before.reuses);
    if counts == (3, 0) && lab.device().raw().compiler().is_err() {
        return skip("the backend has no images apart from loaded programs");
    }
    assert_eq!(counts, (1, 2), "compiled and found again");
    Ok(())
}

fn image<B: Backend>(lab: &Lab<B>) -> Verdict<Vec<u8>> {
    match declaration().source(SOURCE).compile(lab.device()) {
        Ok(image) => Ok(image),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            skip(error)
        }
        Err(error) => Err(error.into()),
    }
}

fn images_are_loaded_instead_of_sources<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs_source(lab)?;
    let image = image(lab)?;
    let architecture = lab.device().info().architecture.clone();
    let before = lab.device().counters().compilations;
    works(lab, &declaration().image(&architecture, image.clone()).load(lab.device())?)?;
    // Among others, in any order; a source that does not compile is not looked at.
    let among = declaration()
        .image("gfx000", vec![1, 2, 3])
        .image(&architecture, image)
        .image("sm_10", vec![4, 5, 6])
        .source("this is not C++");
    works(lab, &among.load(lab.device())?)?;
    assert_eq!(lab.device().counters().compilations, before, "nothing was compiled");
    // Programs that the device cannot load are skipped.
    works(lab, &declaration().image(&architecture, b"broken".as_slice()).source(SOURCE).load(lab.device())?)?;
    refused(declaration().image(&architecture, b"broken".as_slice()).load(lab.device()), |kind| {
        matches!(kind, ErrorKind::Build { .. })
    })
}

fn programs_for_other_devices_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs_source(lab)?;
    let other =
        declaration().image("gfx000", vec![1]).image("sm_10", vec![2]).ptx(".version 9.9\n.target sm_999\n");
    let error = match other.load(lab.device()) {
        Ok(_) => return Err(Stop::Failed("a program for another device was loaded".to_owned())),
        Err(error) => error,
    };
    let ErrorKind::NoProgram { name, architecture, has } = error.kind() else { return Err(error.into()) };
    assert_eq!((name.as_str(), architecture), ("numbers", &lab.device().info().architecture));
    assert_eq!(has, "gfx000, sm_10, PTX of sm_999");
    // With a source in addition, the kernel loads.
    works(lab, &other.source(SOURCE).load(lab.device())?)
}

fn compilers_name_the_sources_own_lines<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs_source(lab)?;
    for line in [1usize, 2, 7] {
        let source = format!("{}{}", "\n".repeat(line - 1), SOURCE.replace("3 * i", "3 * unknown_word"));
        let error: Error = match declaration().source(&source).load(lab.device()) {
            Ok(_) => return Err(Stop::Failed("a source with an unknown word was compiled".to_owned())),
            Err(error) => error,
        };
        let ErrorKind::Build { log } = error.kind() else { return Err(error.into()) };
        // The word is in the third line of the source. NVRTC says kernel(9), hipRTC kernel:9:27.
        let at = line + 2;
        let named = log.contains(&format!("kernel({at})")) || log.contains(&format!("kernel:{at}:"));
        assert!(named && log.contains("unknown_word"), "{log}");
    }
    Ok(())
}

fn parameters_are_checked_by_the_compiler<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs_source(lab)?;
    // SAFETY: never launched.
    let other = unsafe { KernelDef::<(Slice<u32>, f32)>::new("numbers") }.source(SOURCE);
    match other.load(lab.device()) {
        Err(error) if error.to_string().contains("was declared with the parameters") => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err(Stop::Failed("a source with other parameters was compiled".to_owned())),
    }
}

fn kernels_of_other_names_are_not_found<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs_source(lab)?;
    let image = image(lab)?;
    // SAFETY: never launched.
    let other = unsafe { KernelDef::<Numbers>::new("letters") };
    refused(other.image(&lab.device().info().architecture, image).load(lab.device()), |kind| {
        matches!(kind, ErrorKind::NoSuchKernel { .. })
    })
}

fn contraction_is_a_program_of_its_own<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs_source(lab)?;
    image(lab)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let source =
        format!("GPUMEM_KERNEL joined(gpumem::slice<float> y) {{ y[0] = y[1] * y[2] + y[3]; }} // {now}");
    // SAFETY: never launched.
    let apart = unsafe { KernelDef::<(SliceMut<f32>,)>::new("joined") }.source(&source);
    let joined = apart.clone().contract(true);
    let (device, before) = (lab.device(), lab.device().counters().compilations);
    apart.load(device)?;
    joined.load(device)?;
    assert_eq!(device.counters().compilations - before, 2, "one is not taken for the other");
    assert_ne!(apart.compile(device)?, joined.compile(device)?, "the error names the compiler");
    Ok(())
}
