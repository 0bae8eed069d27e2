//! A line of the table.

use super::Operation;
use crate::{
    Row,
    statistics::{median, spread},
};
use serde::{Deserialize, Serialize};

/// Microseconds of a call, one number for each round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// When calls follow each other.
    pub call: Vec<f64>,
    /// Until the call returns.
    pub enqueue: Vec<f64>,
    /// When the host waits after each call; small sizes only.
    pub wait: Vec<f64>,
}

/// One operation and size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// What was called.
    pub operation: Operation,
    /// The number of ranks.
    pub ranks: usize,
    /// Bytes of the larger one of source and destination.
    pub bytes: usize,
    /// Elements of a block, as the call counts them.
    pub count: usize,
    /// The library's own calls, or a plain loop.
    pub raw: Option<Times>,
    /// What `raw` is.
    pub raw_name: String,
    /// Ours.
    pub ours: Times,
    /// Ours with every second column of two arrays.
    pub strided: Times,
    /// Ours with `Options::check`, where that is a choice.
    pub check: Option<Times>,
    /// Elements with a wrong value, over all ways of calling.
    pub wrong: usize,
}

impl Times {
    /// The slower of two ranks in each round.
    fn join(&mut self, other: &Self) {
        for (own, other) in [
            (&mut self.call, &other.call),
            (&mut self.enqueue, &other.enqueue),
            (&mut self.wait, &other.wait),
        ] {
            own.iter_mut().zip(other).for_each(|(own, other)| *own = own.max(*other));
        }
    }
}

impl Line {
    /// Adds what another rank measured: in each round the slowest rank counts.
    pub fn join(&mut self, other: &Self) {
        self.ours.join(&other.ours);
        self.strided.join(&other.strided);
        for (own, other) in [(&mut self.raw, &other.raw), (&mut self.check, &other.check)] {
            if let (Some(own), Some(other)) = (own, other) {
                own.join(other);
            }
        }
        self.wrong += other.wrong;
    }

    /// Bytes a second in GB/s (10⁹ bytes), and over the bus.
    pub fn bandwidths(&self, times: &Times) -> [f64; 2] {
        let algorithm = self.bytes as f64 / median(&times.call) / 1e3;
        [algorithm, algorithm * self.operation.factor(self.ranks)]
    }

    /// The head of the table.
    pub fn head(raw_name: &str) -> String {
        format!(
            "# raw is {raw_name}; times in us, bandwidths in GB/s (10^9 bytes); check: calls with Options::check\n\
             # {:>46} | {:^44} | {:^44} | {:^17} | {:>17} | {:>5}\n{}",
            "",
            "raw",
            "gpumem",
            "ratios to raw",
            "every 2nd column",
            "check",
            columns(
                &[
                    "operation",
                    "size (B)",
                    "count",
                    "type",
                    "redop",
                    "time",
                    "algbw",
                    "busbw",
                    "enqueue",
                    "wait",
                    "time",
                    "algbw",
                    "busbw",
                    "enqueue",
                    "wait",
                    "busbw",
                    "enqueue",
                    "time",
                    "ratio",
                    "time",
                    "#wrong",
                ]
                .map(str::to_owned)
            )
        )
    }

    /// The line as text.
    pub fn text(&self) -> String {
        let computes = matches!(self.operation, Operation::AllReduce | Operation::ReduceScatter);
        let redop = if computes { "sum" } else { "none" };
        let mut cells = vec![
            self.operation.name().to_owned(),
            self.bytes.to_string(),
            self.count.to_string(),
            "float".to_owned(),
            redop.to_owned(),
        ];
        let side = |times: &Times| {
            let [algorithm, bus] = self.bandwidths(times);
            [median(&times.call), algorithm, bus, median(&times.enqueue), median(&times.wait)].map(number)
        };
        cells.extend(self.raw.as_ref().map_or_else(|| ["-"; 5].map(str::to_owned), side));
        cells.extend(side(&self.ours));
        let ratio =
            |of: fn(&Times) -> f64| self.raw.as_ref().map_or(f64::NAN, |raw| of(&self.ours) / of(raw));
        // The bandwidths of equal bytes are as the inverse times.
        cells.push(number(1.0 / ratio(|times| median(&times.call))));
        cells.push(number(ratio(|times| median(&times.enqueue))));
        let strided = median(&self.strided.call);
        cells.extend([number(strided), number(median(&self.ours.call) / strided)]);
        cells.push(number(self.check.as_ref().map_or(f64::NAN, |check| median(&check.call))));
        cells.push(self.wrong.to_string());
        columns(&cells)
    }

    /// The line as rows of a report.
    pub fn rows(&self) -> Vec<Row> {
        let raw_name =
            if self.raw_name.starts_with("NCCL") { "NCCL's own calls" } else { "a plain loop on one thread" };
        let name = |what: &str| format!("collectives/{}/{}B/{what}", self.operation.name(), self.bytes);
        let row = |what: &str, ours: &[f64], reference: &[f64], reference_name| {
            let ratios: Vec<f64> =
                ours.iter().zip(reference).map(|(ours, reference)| ours / reference).collect();
            let [ours, reference] = [ours, reference].map(|times| median(times) * 1e3);
            let known = !ratios.is_empty() && ratios.iter().all(|ratio| ratio.is_finite());
            known.then(|| Row::new(name(what), reference_name, "ns", ours, reference, spread(&ratios)))
        };
        let mut rows = Vec::new();
        if let Some(raw) = &self.raw {
            rows.push(row("call", &self.ours.call, &raw.call, raw_name));
            rows.push(row("enqueue", &self.ours.enqueue, &raw.enqueue, raw_name));
            rows.push(row("wait", &self.ours.wait, &raw.wait, raw_name));
        }
        rows.push(row("every_second_column", &self.strided.call, &self.ours.call, "contiguous arrays"));
        if let Some(check) = &self.check {
            rows.push(row("check", &check.call, &self.ours.call, "without Options::check"));
        }
        rows.into_iter().flatten().collect()
    }
}

/// Four digits, or a dash where there is no number.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        magnitude if magnitude >= 1000.0 => 0,
        magnitude if magnitude >= 100.0 => 1,
        magnitude if magnitude >= 10.0 => 2,
        _ => 3,
    };
    if value.is_finite() { format!("{value:.decimals$}") } else { "-".to_owned() }
}

/// Cells in columns.
fn columns(cells: &[String]) -> String {
    let mut text = String::new();
    for (at, cell) in cells.iter().enumerate() {
        let width = match at {
            0 => 14,
            1 | 2 => 11,
            3 | 4 => 6,
            _ => 8,
        };
        if [5, 10, 15, 17, 19].contains(&at) {
            text += " |";
        }
        text += &if at == 0 { format!("{cell:<width$}") } else { format!(" {cell:>width$}") };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let times = |call: f64| Times { call: vec![call; 3], enqueue: vec![2.0; 3], wait: Vec::new() };
        Line {
            operation: Operation::AllReduce,
            ranks: 4,
            bytes: 1 << 20,
            count: 1 << 18,
            raw: Some(times(100.0)),
            raw_name: "NCCL".to_owned(),
            ours: times(200.0),
            strided: times(400.0),
            check: None,
            wrong: 0,
        }
    }

    #[test]
    fn bandwidths_are_bytes_of_the_result_and_what_the_bus_moves_for_them() {
        let line = line();
        let [algorithm, bus] = line.bandwidths(&line.ours);
        assert!((algorithm - 5.24288).abs() < 1e-9, "1 MiB in 200 us: {algorithm} GB/s");
        assert!((bus - 1.5 * algorithm).abs() < 1e-9, "each rank moves 1.5 times as much: {bus}");
    }

    #[test]
    fn cells_stand_below_their_heads() {
        let (head, text) = (Line::head("NCCL"), line().text());
        let heads = head.lines().last().unwrap();
        let bars = |line: &str| line.match_indices('|').map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(bars(heads), bars(&text), "{heads}\n{text}");
        let cells: Vec<&str> = text.split_whitespace().filter(|cell| *cell != "|").collect();
        assert_eq!(
            cells[..8],
            ["all_reduce", "1048576", "262144", "float", "sum", "100.0", "10.49", "15.73"]
        );
        assert_eq!(cells[8..13], ["2.000", "-", "200.0", "5.243", "7.864"]);
        assert_eq!(cells[15..], ["0.500", "1.000", "400.0", "0.500", "-", "0"]);
    }

    #[test]
    fn the_slowest_rank_of_each_round_counts() {
        let (mut line, mut other) = (line(), line());
        other.ours.call = vec![100.0, 300.0, 100.0];
        other.wrong = 2;
        line.join(&other);
        assert_eq!(line.ours.call, [200.0, 300.0, 200.0]);
        assert_eq!(line.wrong, 2);
    }

    #[test]
    fn a_report_has_what_was_measured() {
        let rows = line().rows();
        let names: Vec<&str> = rows.iter().map(|row| row.name.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["call", "enqueue", "every_second_column"]);
        assert_eq!((rows[0].ours, rows[0].reference, rows[0].unit), (200_000.0, 100_000.0, "ns"));
    }
}
