//! The timeline of the photo example, as a file and in a browser. A program of its own, because a recording holds what
//! everybody does on the device.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![cfg(feature = "host")]

#[path = "../examples/photo/main.rs"]
#[allow(dead_code, reason = "its main reads the command line")]
mod photo;

use gpumem::trace::{Trace, TraceEventKind};
use std::{
    ffi::OsStr,
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

/// Runs the example with a timeline, alone on the device, for a picture of one's own or the sample.
fn run(folder: &Path, input: Option<PathBuf>, timeline: PathBuf) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let output = folder.join("sheet.png");
    let options = photo::Options { device: Some("host".into()), input, output, timeline: Some(timeline) };
    photo::run(&options).unwrap();
}

/// Runs the example, and gives the page with the trace that is in it.
fn page(folder: &Path, input: Option<PathBuf>) -> (PathBuf, String, Trace) {
    let path = folder.join("photo.html");
    run(folder, input, path.clone());
    let page = std::fs::read_to_string(&path).unwrap();
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"trace\">").unwrap();
    let trace = Trace::from_json(rest.split_once("</script>").unwrap().0).unwrap();
    (path, page, trace)
}

#[test]
fn the_timeline_tells_who_holds_what_without_a_script() {
    const SIZE: (u32, u32) = (160, 107);
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small.png");
    image::RgbImage::from_fn(SIZE.0, SIZE.1, |x, y| image::Rgb([x as u8, y as u8, 7])).save(&small).unwrap();
    let (_, page, trace) = page(folder.path(), Some(small.clone()));
    assert_eq!(trace.lost, 0);
    let peaks = trace.peaks();
    let device = peaks.iter().find(|peak| peak.kind.word() == "device").unwrap();
    let held = |name: &str| device.holders.iter().find(|holder| holder.name == name).unwrap().bytes;
    // A pixel has three bytes; the view "photo" shows all of them.
    let bytes = u64::from(SIZE.0 * SIZE.1 * 3);
    assert_eq!((held("original"), held("photo")), (bytes, bytes));
    for peak in &peaks {
        assert!(page.contains(&format!("({} bytes)", peak.bytes)), "{} bytes", peak.bytes);
        for holder in &peak.holders {
            assert!(page.contains(&format!(">{}</th>", holder.name)), "{}", holder.name);
        }
    }
    for loaded in ["http:", "https:", "src=", "<link", "@import", "url("] {
        assert!(!page.contains(loaded), "the page loads nothing, but has {loaded}");
    }
    // The same run as JSON.
    let json = folder.path().join("photo.json");
    run(folder.path(), Some(small), json.clone());
    let again = Trace::from_json(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(again.allocations.len(), trace.allocations.len());
}

/// A browser that can be run from the command line; none where the environment says `off`.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("GPUMEM_BROWSER") {
        return (named != "off").then(|| named.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

/// Opens the page and gives what the browser prints. One that dies or hangs is started anew: it is not what is tested.
fn open(browser: &Path, folder: &Path, page: &Path, more: &[&OsStr]) -> String {
    let mut told = String::new();
    for _ in 0..3 {
        match open_once(browser, tempfile::tempdir_in(folder).unwrap().path(), page, more) {
            Ok(printed) => return printed,
            Err(why) => told += &why,
        }
    }
    panic!("{told}");
}

/// The same, once; or what went wrong.
fn open_once(browser: &Path, folder: &Path, page: &Path, more: &[&OsStr]) -> Result<String, String> {
    let printed = folder.join("printed");
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,1400"])
        .args(["--force-device-scale-factor=1", "--virtual-time-budget=10000"])
        .arg("--run-all-compositor-stages-before-draw")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(File::create(&printed).unwrap())
        .stderr(File::create(folder.join("said")).unwrap());
    let mut child = command.spawn().unwrap_or_else(|why| panic!("{}: {why}", browser.display()));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > Duration::from_secs(120) => {
                let _ = child.kill();
                break child.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let said = || String::from_utf8_lossy(&std::fs::read(folder.join("said")).unwrap()).into_owned();
    match status.success() {
        true => Ok(std::fs::read_to_string(printed).unwrap()),
        false => Err(format!("{status} after {:?}: {}\n", start.elapsed(), said())),
    }
}

/// The values of an attribute of the elements that begin so.
fn attributes<'a>(page: &'a str, element: &str, name: &str) -> Vec<&'a str> {
    let tags = page.match_indices(element).map(|(at, _)| page[at..].split('>').next().unwrap());
    let value = |tag: &'a str| tag.split_once(&format!("{name}=\""))?.1.split('"').next();
    tags.filter_map(value).collect()
}

#[test]
fn the_timeline_opens_in_a_browser_and_shows_what_was_recorded() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no browser; install chromium, or name one in GPUMEM_BROWSER");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (path, _, trace) = page(folder.path(), None);
    let shown = open(&browser, folder.path(), &path, &[OsStr::new("--dump-dom")]);
    assert!(shown.contains("data-drawn=\"true\""), "the script has come to its end");

    // The script has computed the peaks for itself.
    let chart = "<section class=\"chart\"";
    let peaks = trace.peaks();
    let expected: Vec<String> = peaks.iter().map(|peak| peak.bytes.to_string()).collect();
    assert_eq!(attributes(&shown, chart, "data-peak"), expected);
    let reserved: Vec<String> = peaks.iter().map(|peak| peak.reserved.to_string()).collect();
    assert_eq!(attributes(&shown, chart, "data-reserved"), reserved);
    let kinds: Vec<&str> = peaks.iter().map(|peak| peak.kind.word()).collect();
    assert_eq!(attributes(&shown, chart, "data-kind"), kinds);

    // A lane for each of the three streams and for the thread, with every event on one of them.
    let lanes = attributes(&shown, "<div class=\"lane\"", "data-lane");
    let streams = lanes.iter().filter(|lane| lane.starts_with("stream ")).count();
    assert_eq!(
        (streams, lanes.len()),
        (trace.streams.len(), trace.streams.len() + trace.threads.len()),
        "{lanes:?}"
    );
    assert_eq!(streams, 3, "the default stream, the one that cuts, and the one that pastes");
    let drawn: usize = attributes(&shown, "<div class=\"lane\"", "data-events")
        .iter()
        .map(|n| n.parse::<usize>().unwrap())
        .sum();
    let is_drawn = |what: &TraceEventKind| {
        !matches!(what, TraceEventKind::Reserve { .. } | TraceEventKind::Release { .. })
    };
    assert_eq!(drawn, trace.events.iter().filter(|event| is_drawn(&event.what)).count());

    // Who holds most at the peak has a band, named below the picture.
    let keys = shown.split_once("class=\"keys\"").unwrap().1.split_once("</ul>").unwrap().0;
    for holder in peaks[0].holders.iter().take(8) {
        assert!(keys.contains(&format!("</i>{}<", holder.name)), "{}: {keys}", holder.name);
    }

    let picture = folder.path().join("photo.png");
    let shot = format!("--screenshot={}", picture.display());
    open(&browser, folder.path(), &path, &[OsStr::new(&shot)]);
    let pixels = image::open(&picture).unwrap().into_rgb8();
    assert_eq!(pixels.dimensions(), (1280, 1400));
    // The bands of the sheet and of the original are broad, and have the first two colours.
    for color in [[0x4c, 0x78, 0xa8], [0xf5, 0x85, 0x18]] {
        let area = pixels.pixels().filter(|pixel| pixel.0 == color).count();
        assert!(area > 5_000, "{area} pixels of {color:?}");
    }
}
