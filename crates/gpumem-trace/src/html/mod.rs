//! A trace as a page: one file that needs nothing but a browser, and of which the tables need no script.

use super::{Peak, PeakHolder, Trace, TraceEventKind};
use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

const TEMPLATE: &str = include_str!("timeline.html");
const STYLE: &str = include_str!("timeline.css");
const MODEL: &str = include_str!("model.js");
const SCRIPT: &str = include_str!("timeline.js");

/// Most events that are drawn. Of more, uses and waits are left out evenly; allocations and frees never are.
const MOST_EVENTS: usize = 200_000;
/// Most devices in the title.
const MOST_NAMES: usize = 4;
/// Most rows of a table of holders.
const MOST_HOLDERS: usize = 40;

impl Trace {
    /// The trace as a page: memory over time for each device and kind, who held what at the peak, and a lane for each
    /// stream and thread. The file loads nothing, and the trace can be taken out of it again: it stands as JSON in the
    /// element `trace`, whole up to 200,000 events.
    pub fn to_html(&self) -> String {
        let peaks = self.peaks();
        let names: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
        let (first, more) = names.split_at(names.len().min(MOST_NAMES));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let title = format!("Memory of {}{more}", first.join(", "));
        let shown = self.thinned(MOST_EVENTS);
        // In a script only the text that ends it is special.
        let data = shown.to_json().replace('<', "\\u003c");
        let parts = [
            ("title", Escaped(&title).to_string()),
            ("style", STYLE.to_owned()),
            ("facts", self.facts(self.events.len() - shown.events.len())),
            ("peaks", peaks.iter().map(|peak| self.table(peak)).collect()),
            ("script", format!("{MODEL}{SCRIPT}")),
            // Last: what is put in is not looked at again, and this is the only part that others have written.
            ("trace", data),
        ];
        fill(TEMPLATE, &parts)
    }

    /// The trace with few enough events to be drawn.
    fn thinned(&self, most: usize) -> Cow<'_, Trace> {
        let is_minor =
            |what: &TraceEventKind| matches!(what, TraceEventKind::Use { .. } | TraceEventKind::Wait { .. });
        let minor = self.events.iter().filter(|event| is_minor(&event.what)).count();
        let room = most.saturating_sub(self.events.len() - minor);
        if minor <= room {
            return Cow::Borrowed(self);
        }
        let mut thinned = self.clone();
        let mut number = 0;
        thinned.events.retain(|event| {
            if !is_minor(&event.what) {
                return true;
            }
            number += 1;
            // Whether the share that there is room for has gone up with this one.
            number * room / minor > (number - 1) * room / minor
        });
        Cow::Owned(thinned)
    }

    fn facts(&self, hidden: usize) -> String {
        let count =
            |of: fn(&TraceEventKind) -> bool| self.events.iter().filter(|event| of(&event.what)).count();
        let mut text = format!(
            "{} \u{b7} {} allocations, {} frees, {} uses, {} waits",
            Time(self.span),
            count(|what| matches!(what, TraceEventKind::Allocate { .. })),
            count(|what| matches!(what, TraceEventKind::Free { .. })),
            count(|what| matches!(what, TraceEventKind::Use { .. })),
            count(|what| matches!(what, TraceEventKind::Wait { .. })),
        );
        let failures = count(|what| matches!(what, TraceEventKind::Fail { .. }));
        let more = [
            (failures, "requests found no memory"),
            (self.lost as usize, "events were not kept"),
            (hidden, "uses and waits are not drawn"),
        ];
        for (number, what) in more.into_iter().filter(|(number, _)| *number > 0) {
            let _ = write!(text, " \u{b7} <strong>{number} {what}</strong>");
        }
        text
    }

    /// Who held what when most was in use.
    fn table(&self, peak: &Peak) -> String {
        let device = self.devices.get(peak.device as usize).map_or("", |device| device.name.as_str());
        let (device, kind) = (Escaped(device), peak.kind.word());
        let mut text = format!(
            "<table class=\"holders\" data-device=\"{device}\" data-kind=\"{kind}\" data-peak=\"{}\" \
             data-reserved=\"{}\">\n<caption>{device}, {kind} memory: peak of <strong>{}</strong> ({} bytes) \
             after {}; {} reserved at most</caption>\n<thead><tr><th scope=\"col\">held by</th>\
             <th scope=\"col\">allocations</th><th scope=\"col\">bytes</th><th scope=\"col\">share</th></tr>\
             </thead>\n<tbody>\n",
            peak.bytes,
            peak.reserved,
            Bytes(peak.bytes),
            peak.bytes,
            Time(peak.time),
            Bytes(peak.reserved),
        );
        let (shown, rest) = peak.holders.split_at(peak.holders.len().min(MOST_HOLDERS));
        let rest = (!rest.is_empty()).then(|| PeakHolder {
            name: format!("{} others", rest.len()),
            named: false,
            bytes: rest.iter().map(|holder| holder.bytes).sum(),
            count: rest.iter().map(|holder| holder.count).sum(),
        });
        for PeakHolder { name, named, bytes, count } in shown.iter().chain(&rest) {
            let share = 100.0 * *bytes as f64 / peak.bytes.max(1) as f64;
            let class = if *named { "named" } else { "unnamed" };
            let count = if *count == 0 { String::new() } else { count.to_string() };
            let _ = writeln!(
                text,
                "<tr><th scope=\"row\" class=\"{class}\">{}</th><td>{count}</td><td>{}</td>\
                 <td class=\"share\" style=\"--share:{share:.1}%\">{share:.1} %</td></tr>",
                Escaped(name),
                Bytes(*bytes),
            );
        }
        text + "</tbody>\n</table>\n"
    }
}

/// Puts each part in the place that has its name. What is put in is not searched.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut page =
        String::with_capacity(parts.iter().map(|(_, part)| part.len()).sum::<usize>() + template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        page.push_str(before);
        let part = parts.iter().find(|(part, _)| *part == name);
        page.push_str(part.map_or("", |(_, text)| text.as_str()));
        rest = after;
    }
    page + rest
}

/// Text in HTML.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '&' => f.write_str("&amp;"),
            '"' => f.write_str("&quot;"),
            character => f.write_char(character),
        })
    }
}

/// Bytes for people.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::bytes::Bytes(usize::try_from(self.0).unwrap_or(usize::MAX)).fmt(f)
    }
}

/// Nanoseconds for people.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} \u{b5}s", nanoseconds / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", nanoseconds / 1e6),
            _ => write!(f, "{:.2} s", nanoseconds / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_not_searched() {
        let parts = [("a", "{{b}}".to_owned()), ("b", "2".to_owned())];
        assert_eq!(fill("<{{a}}|{{b}}|{{c}}>", &parts), "<{{b}}|2|>");
    }

    #[test]
    fn every_place_of_the_template_is_filled() {
        let places: Vec<&str> =
            TEMPLATE.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0)).collect();
        assert_eq!(places, ["title", "style", "title", "facts", "peaks", "trace", "script"]);
    }

    #[test]
    fn a_long_trace_loses_uses_evenly_and_nothing_else() {
        let about = |number: u64| match number % 10 {
            0 => {
                TraceEventKind::Reserve { device: 0, kind: crate::TraceKind::all().next().unwrap(), bytes: 1 }
            }
            _ => TraceEventKind::Wait { stream: None, of: 0, submission: number, took: 0 },
        };
        let event = |time| crate::TraceEvent { time, thread: 0, what: about(time) };
        let trace = Trace { events: (0..1000).map(event).collect(), ..Trace::empty() };
        let is_major = |what: &TraceEventKind| matches!(what, TraceEventKind::Reserve { .. });
        for most in [100, 101, 400, 999] {
            let shown = trace.thinned(most).into_owned();
            assert_eq!(shown.events.len(), most);
            assert_eq!(shown.events.iter().filter(|event| is_major(&event.what)).count(), 100);
            let early = shown.events.iter().filter(|event| event.time < 500).count();
            assert!(early.abs_diff(most / 2) <= 1, "{early} of {most}");
        }
        assert_eq!(*trace.thinned(1000), trace);
    }

    #[test]
    fn people_read_times() {
        let text = [7, 1_500, 2_340_000, 61_000_000_000].map(|time| Time(time).to_string());
        assert_eq!(text, ["7 ns", "1.5 \u{b5}s", "2.3 ms", "61.00 s"]);
    }
}
