//! The rules, on made-up backends: `a` has no driver, `b` has a driver and no device, `c` has a device.

use super::*;
use std::sync::{Arc, Mutex};

fn missing(library: &'static str) -> LoadError {
    LoadError { library, tried: vec!["liba.so.1".to_owned()], failure: LoadFailure::Missing }
}

fn no_device(name: &'static str) -> Error {
    Error::new(name, "open", ErrorKind::NoSuchDevice { wanted: format!("{name}:0"), found: 0 })
}

fn info(backend: &'static str) -> DeviceInfo {
    DeviceInfo {
        backend,
        ordinal: 0,
        name: String::new(),
        uuid: None,
        pci: None,
        total_memory: 0,
        architecture: String::new(),
    }
}

const A: Candidate<String> = Candidate {
    name: "a",
    probe: || Err(missing("the A driver")),
    devices: || Err(Error::new("a", "devices", missing("the A driver"))),
    open: |_| Err(Error::new("a", "open", missing("the A driver"))),
};
const B: Candidate<String> =
    Candidate { name: "b", probe: || Ok(()), devices: || Ok(Vec::new()), open: |_| Err(no_device("b")) };
const C: Candidate<String> = Candidate {
    name: "c",
    probe: || Ok(()),
    devices: || Ok(vec![info("c")]),
    open: |selector| Ok(selector.to_string()),
};
const HOST: Candidate<String> = Candidate { name: "host", ..C };
const ALL: &[Candidate<String>] = &[A, B, C];

fn wish(text: &str) -> Option<DeviceSelector> {
    Some(parse(OsStr::new(text)).unwrap())
}

fn unknown(operation: &'static str) -> Error {
    let kind = ErrorKind::UnknownBackend { wanted: "d".to_owned(), known: "cuda, roc, host".to_owned() };
    Error::new("", operation, kind)
}

#[test]
fn the_first_enabled_backend_is_the_default_and_no_other() {
    assert_eq!(default_selector(&[C, A], None), Ok(DeviceSelector::ordinal("c", 0)));
    assert_eq!(open_default(&[C, A], None), Ok("c:0".to_owned()));
    assert_eq!(default_selector(ALL, None).unwrap_err().kind(), &ErrorKind::Load(missing("the A driver")));
    assert_eq!(open_default(ALL, None).unwrap_err().kind(), &ErrorKind::Load(missing("the A driver")));
}

#[test]
fn an_unavailable_default_reports_attempts_and_alternatives() {
    let candidates = &[A, HOST];
    for error in
        [default_selector(candidates, None).unwrap_err(), open_default(candidates, None).unwrap_err()]
    {
        let message = error.to_string();
        for part in ["on a:", "the A driver", "liba.so.1", "GPUMEM_DEVICE=host", "open_first_available"] {
            assert!(message.contains(part), "{message} lacks {part}");
        }
    }
    let message = open_default(&[B, HOST], None).unwrap_err().to_string();
    assert!(message.contains("GPUMEM_DEVICE=host") && message.contains("the backend has 0"), "{message}");
}

#[test]
fn advice_names_only_what_is_enabled() {
    assert!(advice(&["cuda", "roc", "host"]).unwrap().contains("GPUMEM_DEVICE=host"));
    assert!(advice(&["cuda", "roc"]).unwrap().contains("GPUMEM_DEVICE or"));
    assert!(advice(&["cuda"]).unwrap().contains("the feature `host`"));
    assert_eq!(advice(&["host"]), None);
}

#[test]
fn a_disabled_backend_differs_from_an_unknown_one() {
    let error = open(ALL, &DeviceSelector::ordinal("cuda", 0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "open: this program was built without the backend \"cuda\" (it has: a, b, c) \
         (enable the feature `cuda` of gpumem)"
    );
    let error = open(ALL, &DeviceSelector::ordinal("gpu", 0)).unwrap_err();
    assert_eq!(error.to_string(), "open: there is no backend \"gpu\": the names are cuda, roc, host");
}

#[test]
fn the_named_device_is_never_replaced() {
    assert_eq!(default_selector(ALL, wish("c:2")), Ok(DeviceSelector::ordinal("c", 2)));
    assert_eq!(open_default(ALL, wish("c:2")), Ok("c:2".to_owned()));
    assert_eq!(open_first_available(ALL, wish("c:2")), Ok(("c:2".to_owned(), Vec::new())));

    let expected = wished(no_device("b"));
    assert_eq!(open_default(ALL, wish("b")), Err(expected.clone()));
    assert_eq!(open_first_available(ALL, wish("b")), Err(expected));

    assert_eq!(default_selector(ALL, wish("d")), Err(wished(unknown("open"))));
    assert_eq!(open_default(ALL, wish("d")), Err(wished(unknown("open"))));
    assert_eq!(open_first_available(ALL, wish("d")), Err(wished(unknown("open"))));
}

#[test]
fn an_invalid_variable_is_an_error_that_names_it() {
    for text in ["", ":1", "cuda:x"] {
        let error = parse(OsStr::new(text)).unwrap_err();
        assert_eq!(error.operation(), "open");
        assert!(error.hint().unwrap().contains("GPUMEM_DEVICE"));
        let ErrorKind::InvalidSelector { text: told, .. } = error.kind() else { panic!("{error}") };
        assert_eq!(told, text);
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf8_is_an_error() {
    use std::os::unix::ffi::OsStrExt;
    let error = parse(OsStr::from_bytes(b"cuda:\xff")).unwrap_err();
    assert!(error.hint().unwrap().contains("GPUMEM_DEVICE"));
    assert!(matches!(error.kind(), ErrorKind::InvalidSelector { why: "it is not UTF-8", .. }), "{error}");
}

#[test]
fn opening_by_name_gives_the_backends_own_answer() {
    assert_eq!(open(ALL, &DeviceSelector::ordinal("c", 1)), Ok("c:1".to_owned()));
    assert_eq!(open(ALL, &DeviceSelector::ordinal("b", 0)), Err(no_device("b")));
    assert_eq!(open(ALL, &DeviceSelector::ordinal("d", 0)), Err(unknown("open")));
}

#[test]
fn an_absent_backend_does_not_hide_the_devices_of_the_others() {
    let (listed, unavailable) = devices(ALL);
    assert_eq!(listed, [info("c")]);
    assert_eq!(unavailable, [("a", Error::new("a", "devices", missing("the A driver")))]);
}

#[test]
fn one_usable_backend_is_enough_for_the_probe() {
    assert_eq!(probe(ALL), Ok(()));
    assert_eq!(probe(&[A]), Err(missing("the A driver")));
    let both = probe(&[A, Candidate { name: "e", ..A }]).unwrap_err();
    assert_eq!(both.tried, ["a", "e"]);
    let message = both.to_string();
    assert!(message.contains("a: the A driver") && message.contains("; e: the A driver"), "{message}");
}

#[test]
fn the_first_backend_that_opens_is_used_and_skipped_ones_are_reported() {
    let heard = Heard::default();
    let best = tracing::subscriber::with_default(heard.clone(), || open_first_available(ALL, None));
    let passed_over = vec![("a", Error::new("a", "open", missing("the A driver"))), ("b", no_device("b"))];
    assert_eq!(best, Ok(("c:0".to_owned(), passed_over)));
    let events = heard.0.lock().unwrap();
    assert_eq!(events.len(), 2, "{events:?}");
    for (event, name) in events.iter().zip(["a", "b"]) {
        assert!(event.starts_with("INFO") && event.contains(&format!("{name:?}")), "{event}");
    }
    assert!(events[0].contains("liba.so.1"), "{events:?}");
}

#[test]
fn without_any_device_every_reason_is_reported() {
    let error = open_first_available(&[A, B], None).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Load(_)), "{error}");
    let message = error.to_string();
    assert!(message.contains("liba.so.1") && message.contains("there is no device b:0"), "{message}");
}

/// A subscriber that keeps the events as text.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Heard {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = event.metadata().level().to_string();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text.push_str(&format!(" {field}={value:?}"));
        });
        self.0.lock().unwrap().push(text);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
