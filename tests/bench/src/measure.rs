//! The rounds.

use crate::statistics::{median, spread};
use crate::{Bench, Measure, Pair, Routine, Row};
use anyhow::{Result, bail};
use std::time::Duration;

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// How long one side runs in one round, so that reading the clock costs nothing.
    pub sample: Duration,
    /// Rounds, at least 1 and best even, because the order of the sides alternates.
    pub rounds: u32,
    /// No more rounds after that time, but for the first four.
    pub limit: Duration,
}

impl Effort {
    /// Numbers to be quoted: a second or so for each bench.
    pub const FULL: Self =
        Self { sample: Duration::from_millis(10), rounds: 50, limit: Duration::from_secs(20) };
    /// Shows that a bench runs.
    pub const QUICK: Self =
        Self { sample: Duration::from_micros(200), rounds: 4, limit: Duration::from_secs(1) };
}

/// Rounds that are made whatever they take; less has no median worth the name.
const FEWEST_ROUNDS: u32 = 4;
/// Calls in one sample are no more than this, however short the call.
const MOST_CALLS: u64 = 1 << 30;

/// Prepares the bench and measures it.
///
/// # Errors
/// [`Unavailable`](crate::Unavailable) where the bench cannot run on this machine, and whatever the routines report.
pub fn measure(bench: Bench, effort: Effort) -> Result<Row> {
    let Bench { name, reference_name, measure, prepare } = bench;
    let pair = prepare()?;
    let (ours, reference, spread) = match (measure, pair) {
        (
            Measure::Count,
            Pair { ours: Routine::Counted(mut ours), reference: Routine::Counted(mut reference) },
        ) => (ours()? as f64, reference()? as f64, 0.0),
        (
            Measure::Throughput { .. } | Measure::Latency | Measure::Scaling,
            Pair { ours: Routine::Timed(mut ours), reference: Routine::Timed(mut reference) },
        ) => {
            let rounds = take_turns(&mut *ours, &mut *reference, effort)?;
            let value = |nanoseconds: &[f64]| measure.value(median(nanoseconds));
            let ratios: Vec<_> =
                rounds.ours.iter().zip(&rounds.reference).map(|(ours, reference)| ours / reference).collect();
            (value(&rounds.ours), value(&rounds.reference), spread(&ratios))
        }
        _ => bail!("{name}: the routines do not fit the measure {measure:?}"),
    };
    Ok(Row::new(name, reference_name, measure.unit(), ours, reference, spread))
}

type Timed<'a> = &'a mut dyn FnMut(u64) -> Result<Duration>;

/// Nanoseconds of one call, for each round.
#[derive(Default)]
struct Rounds {
    ours: Vec<f64>,
    reference: Vec<f64>,
}

fn take_turns(ours: Timed<'_>, reference: Timed<'_>, effort: Effort) -> Result<Rounds> {
    let our_calls = calls_of_a_sample(ours, effort.sample)?;
    let reference_calls = calls_of_a_sample(reference, effort.sample)?;
    let mut rounds = Rounds::default();
    let mut spent = Duration::ZERO;
    for round in 0..effort.rounds.max(1) {
        if round >= FEWEST_ROUNDS && spent >= effort.limit {
            break;
        }
        // The second one finds warm caches and a higher clock: each does half of the time.
        let (our_time, reference_time) = if round % 2 == 0 {
            let our_time = ours(our_calls)?;
            (our_time, reference(reference_calls)?)
        } else {
            let reference_time = reference(reference_calls)?;
            (ours(our_calls)?, reference_time)
        };
        spent += our_time + reference_time;
        rounds.ours.push(our_time.as_nanos() as f64 / our_calls as f64);
        rounds.reference.push(reference_time.as_nanos() as f64 / reference_calls as f64);
    }
    Ok(rounds)
}

/// How many calls take as long as a sample. Trying it out also warms the routine up.
fn calls_of_a_sample(routine: Timed<'_>, sample: Duration) -> Result<u64> {
    let mut calls = 1;
    loop {
        let took = routine(calls)?;
        if took >= sample || calls >= MOST_CALLS {
            return Ok(calls);
        }
        // From a tenth of the sample on the estimate is good; before that it only has to grow.
        let wanted = sample.as_nanos() as f64 / took.as_nanos().max(1) as f64 * calls as f64;
        calls = (wanted.ceil() as u64).clamp(calls + 1, (calls * 10).min(MOST_CALLS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    const EFFORT: Effort =
        Effort { sample: Duration::from_micros(10), rounds: 20, limit: Duration::from_secs(1) };

    fn constant(nanoseconds: u64) -> Routine {
        Routine::clocked(move |calls| Ok(Duration::from_nanos(nanoseconds * calls)))
    }

    fn bench(measure: Measure, ours: Routine, reference: Routine) -> Bench {
        Bench::new("a/bench", "that", measure, || Ok(Pair { ours, reference }))
    }

    fn row(kind: Measure, ours: Routine, reference: Routine) -> Row {
        measure(bench(kind, ours, reference), EFFORT).unwrap()
    }

    #[test]
    fn latency_is_in_nanoseconds_and_low_is_good() {
        let row = row(Measure::Latency, constant(300), constant(100));
        assert_eq!((row.ours, row.reference, row.ratio, row.unit), (300.0, 100.0, Some(3.0), "ns"));
    }

    #[test]
    fn throughput_is_in_gigabytes_a_second_and_high_is_good() {
        let row = row(Measure::Throughput { bytes: 4000 }, constant(100), constant(200));
        assert_eq!((row.ours, row.reference, row.ratio, row.unit), (40.0, 20.0, Some(2.0), "GB/s"));
    }

    #[test]
    fn scaling_compares_much_with_little() {
        assert_eq!(row(Measure::Scaling, constant(110), constant(100)).ratio, Some(1.1));
    }

    #[test]
    fn zero_against_zero_is_equal_and_a_number_against_zero_has_no_ratio() {
        let count = |number| Routine::count(move || Ok(number));
        assert_eq!(row(Measure::Count, count(0), count(0)).ratio, Some(1.0));
        assert_eq!(row(Measure::Count, count(2), count(0)).ratio, None);
        assert_eq!(row(Measure::Count, count(1), count(4)).ratio, Some(0.25));
    }

    #[test]
    fn a_machine_that_slows_down_does_not_show_in_the_ratio() {
        let clock = Rc::new(Cell::new(1000.0_f64));
        let drifting = |clock: Rc<Cell<f64>>| {
            Routine::clocked(move |calls| {
                clock.set(clock.get() * 1.02);
                Ok(Duration::from_nanos((clock.get() * calls as f64) as u64))
            })
        };
        let row = row(Measure::Latency, drifting(clock.clone()), drifting(clock.clone()));
        assert!(clock.get() > 2000.0, "it has slowed down to half: {}", clock.get());
        let ratio = row.ratio.unwrap();
        assert!((0.98..1.02).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_call_that_takes_long_is_made_a_few_times_only() {
        let calls = Rc::new(Cell::new(0));
        let counter = calls.clone();
        let slow = Routine::clocked(move |n| {
            counter.set(counter.get() + n);
            Ok(Duration::from_secs(n))
        });
        row(Measure::Latency, slow, constant(100));
        assert_eq!(calls.get(), 1 + u64::from(FEWEST_ROUNDS));
    }

    #[test]
    fn a_call_that_takes_no_time_ends_too() {
        assert!(row(Measure::Latency, constant(0), constant(1)).ours < 1.0);
    }

    #[test]
    fn errors_of_routines_are_returned() {
        let failing = Routine::call(|| -> Result<()> { bail!("out of memory") });
        let error = measure(bench(Measure::Latency, failing, constant(1)), EFFORT).unwrap_err();
        assert_eq!(error.to_string(), "out of memory");
        let error = measure(bench(Measure::Count, constant(1), constant(1)), EFFORT).unwrap_err();
        assert!(error.to_string().contains("do not fit"), "{error}");
    }

    #[test]
    fn a_batch_is_timed_as_a_whole() {
        let Routine::Timed(mut batch) = Routine::batch(|calls| {
            std::thread::sleep(Duration::from_millis(calls));
            Ok(())
        }) else {
            panic!("a batch is timed");
        };
        assert!(batch(3).unwrap() >= Duration::from_millis(3));
    }
}
