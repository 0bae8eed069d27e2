//! Callbacks, futures and scopes.

use super::tools::{fail, same};
use crate::{Lab, Level, Verdict, refused, refused_layout};
use gpumem_core::{Backend, Error, ErrorKind, LayoutError};
use gpumem_runtime::Completion;
use ndarray::{Array1, Array2, s};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

cases! { Level::Stream;
    callbacks_run_in_order,
    a_panic_in_a_callback_is_kept,
    blocking_in_a_callback_is_refused,
    enqueuing_in_a_callback_is_fine,
    an_array_can_be_waited_for,
    futures_complete,
    a_scope_has_synchronised_when_it_ends,
    a_scope_left_early_has_synchronised,
    a_scope_that_panics_has_synchronised,
    a_scope_refuses_wrong_shapes,
}

const LEN: usize = 20_000;

fn callbacks_run_in_order<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let (sender, receiver) = mpsc::channel();
    for number in 0..20 {
        if number % 7 == 0 {
            lab.delay(&stream)?;
        }
        let sender = sender.clone();
        stream.add_callback(move |result| drop(sender.send((number, result))))?;
    }
    drop(sender);
    stream.synchronize()?;
    let told: Vec<_> = receiver.try_iter().collect();
    assert_eq!(told, (0..20).map(|number| (number, Ok(()))).collect::<Vec<_>>());
    Ok(())
}

fn a_panic_in_a_callback_is_kept<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let (sender, receiver) = mpsc::channel();
    stream.add_callback(|_| resume_unwind(Box::new("on purpose")))?;
    stream.add_callback(move |_| sender.send(()).unwrap_or_default())?;
    stream.synchronize()?;
    assert_eq!(receiver.try_recv(), Ok(()), "the next callback runs all the same");
    let errors = lab.device().take_errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(matches!(errors[0].kind(), ErrorKind::CallbackPanicked { message } if message == "on purpose"));
    assert!(lab.device().take_errors().is_empty(), "told once");
    Ok(())
}

fn blocking_in_a_callback_is_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device().clone();
    let (stream, other) = (device.stream()?, device.stream()?);
    let array = device.to_device(&[1u8, 2, 3])?;
    let event = stream.record_event()?;
    let (sender, receiver) = mpsc::channel();
    stream.add_callback(move |_| {
        let refusals: Vec<Option<Error>> = vec![
            device.synchronize().err(),
            device.flush().err(),
            // SAFETY: no other thread uses the device.
            unsafe { device.reset() }.err(),
            other.synchronize().err(),
            event.synchronize().err(),
            other.scope(|_| ()).err(),
            array.synchronize().err(),
            array.copy_to_host().err(),
            array.get(0).err(),
            device.to_device(&[1u8]).err(),
        ];
        drop(sender.send(refusals));
    })?;
    stream.synchronize()?;
    let Ok(refusals) = receiver.recv_timeout(Duration::from_secs(20)) else {
        return fail("the callback never ran");
    };
    for (number, error) in refusals.into_iter().enumerate() {
        let kind = error.as_ref().map(Error::kind);
        assert_eq!(kind, Some(&ErrorKind::BlockingInCallback), "blocking call {number}");
    }
    Ok(())
}

/// For code that is handed an address and knows no streams.
fn an_array_can_be_waited_for<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (stream, other) = (lab.device().stream()?, lab.device().stream()?);
    let mut array = lab.device().device_array::<u32, _>(LEN)?;
    let mut copy = lab.device().device_array::<u32, _>(LEN)?;
    lab.delay(&stream)?;
    stream.fill(&mut array, 4)?;
    other.copy_to_device(&mut copy, &array)?;
    array.synchronize()?;
    assert!(stream.query()? && other.query()?, "the writer and the reader");
    array.synchronize()?;
    assert_eq!(copy.copy_to_host()?, Array1::from_elem(LEN, 4));
    Ok(())
}

fn enqueuing_in_a_callback_is_fine<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let mut array = lab.device().device_array::<u32, _>(LEN)?;
    let (other, (sender, receiver)) = (lab.device().stream()?, mpsc::channel());
    lab.delay(&stream)?;
    stream.add_callback(move |_| {
        let result = other.fill(&mut array, 4);
        drop(sender.send((array, result)));
    })?;
    stream.synchronize()?;
    let Ok((array, result)) = receiver.recv_timeout(Duration::from_secs(20)) else {
        return fail("the callback never ran");
    };
    result?;
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 4).view());
    Ok(())
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(completion: Completion) -> Result<(), Error> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut completion = pin!(completion);
    loop {
        match completion.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

fn futures_complete<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    block_on(stream.completed())?;
    let mut array = lab.device().device_array::<u32, _>(LEN)?;
    lab.delay(&stream)?;
    stream.fill(&mut array, 2)?;
    let event = stream.record_event()?;
    let (first, second) = (stream.completed(), event.completed());
    drop(stream.completed());
    block_on(first)?;
    assert!(event.query()?, "the work before the future is done");
    block_on(second)?;
    block_on(event.completed())?;
    // A future that has completed says so again and again.
    let waker = Waker::noop();
    let mut done = pin!(stream.completed());
    while done.as_mut().poll(&mut Context::from_waker(waker)).is_pending() {
        thread::yield_now();
    }
    assert_eq!(done.as_mut().poll(&mut Context::from_waker(waker)), Poll::Ready(Ok(())));
    Ok(())
}

fn a_scope_has_synchronised_when_it_ends<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (stream, other) = (lab.device().stream()?, lab.device().stream()?);
    let mut array = lab.device().device_array::<u32, _>((100, 30))?;
    let mut whole = Array2::zeros((100, 30));
    let mut gaps = Array2::from_elem((200, 60), 0xEEEE_EEEEu32);
    lab.delay(&other)?;
    other.fill(&mut array, 6)?;
    let value = stream.scope(|scope| {
        lab.delay(scope.stream())?;
        scope.copy_to_host(&array, whole.view_mut())?;
        scope.copy_to_host(&array.t(), gaps.slice_mut(s![..;-2, 1..;2]).reversed_axes())?;
        Ok::<_, Error>("the value of the body")
    })??;
    assert_eq!(value, "the value of the body");
    assert!(stream.query()?);
    same(whole.view(), Array2::from_elem((100, 30), 6).view());
    let mut expected = Array2::from_elem((200, 60), 0xEEEE_EEEEu32);
    expected.slice_mut(s![..;-2, 1..;2]).fill(6);
    same(gaps.view(), expected.view());
    Ok(())
}

fn a_scope_left_early_has_synchronised<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let array = lab.device().to_device(&Array1::from_elem(LEN, 3u32))?;
    let mut host = Array1::zeros(LEN);
    let left = stream.scope(|scope| -> Result<(), Error> {
        lab.delay(scope.stream())?;
        scope.copy_to_host(&array, host.view_mut())?;
        array.get(LEN)?;
        Ok(())
    })?;
    assert!(left.is_err(), "the body left by an error");
    assert!(stream.query()?);
    same(host.view(), Array1::from_elem(LEN, 3).view());
    Ok(())
}

fn a_scope_that_panics_has_synchronised<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let array = lab.device().to_device(&Array1::from_elem(LEN, 3u32))?;
    let mut host = Array1::zeros(LEN);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        stream.scope(|scope| -> Result<(), Error> {
            lab.delay(scope.stream())?;
            scope.copy_to_host(&array, host.view_mut())?;
            resume_unwind(Box::new("on purpose"))
        })
    }));
    assert!(panicked.is_err());
    assert!(stream.query()?);
    same(host.view(), Array1::from_elem(LEN, 3).view());
    Ok(())
}

fn a_scope_refuses_wrong_shapes<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let array = lab.device().to_device(&[1u8, 2, 3])?;
    let mut host = Array1::from_elem(4, 9u8);
    let result = stream.scope(|scope| scope.copy_to_host(&array, host.view_mut()))?;
    refused_layout(result, |error| matches!(error, LayoutError::ShapeMismatch { .. }))?;
    assert_eq!(host.to_vec(), [9; 4]);
    refused(
        stream.scope(|scope| scope.copy_to_host(&array, ndarray::ArrayViewMut1::from(&mut [][..])))?,
        |kind| matches!(kind, ErrorKind::Layout(_)),
    )
}
