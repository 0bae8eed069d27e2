//! Operations in graphs: a launch is a graph of the driver, an operation, a graph of the driver, and so on.

use crate::ranks::Rank;
use gpumem::{
    collectives::{InPlace, Options, Sum},
    reads, s, writes,
};

const LEN: usize = 1000;
const ROUNDS: usize = 200;

/// The value of an element of a rank in a round.
fn value(rank: usize, round: usize, at: usize) -> i32 {
    (rank * 100_000 + round * 1000 + at) as i32
}

/// Launches graphs with other arrays each time, and looks at the results when all have been launched.
pub(crate) fn graphs(own: &Rank) {
    let (comm, stream) = (own.join(&Options::new()), own.stream());
    let forms = (reads::<i32, _>(LEN), writes::<i32, _>(LEN));
    let graph = own.device.record(forms, |stream, (x, mut w)| {
        let mut g = stream.to_device(&x.slice(s![..;-1])?)?;
        comm.on(stream).all_reduce(InPlace, &mut g, Sum)?;
        stream.copy_to_device(&mut w.slice_mut(s![..;-1])?, &g)?;
        comm.on(stream).all_reduce(InPlace, &mut w, Sum)?;
        stream.fill(&mut g, 7)?;
        stream.copy_to_host(&w)
    });
    let graph = graph.unwrap();
    let launched = (0..ROUNDS).map(|round| {
        let x: Vec<i32> = (0..LEN).map(|at| value(own.rank, round, at)).collect();
        let x = stream.to_device(&x).unwrap();
        let mut w = stream.device_array::<i32, _>(LEN).unwrap();
        let host = graph.launch(&stream, (&x, &mut w)).unwrap();
        (w, host)
    });
    for (round, (w, host)) in launched.collect::<Vec<_>>().into_iter().enumerate() {
        let sum = |at| (0..own.size).map(|rank| value(rank, round, at)).sum::<i32>() * own.size as i32;
        let expected: Vec<i32> = (0..LEN).map(sum).collect();
        assert_eq!(host.view().unwrap().to_vec(), expected, "round {round}");
        assert_eq!(stream.copy_to_host(&w).unwrap().view().unwrap().to_vec(), expected, "round {round}");
    }
    own.say(&graph.report().to_string());
    comm.destroy().unwrap();
}
