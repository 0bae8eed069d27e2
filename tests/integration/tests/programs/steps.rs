//! The operations of programs.

use crate::{
    model::{Known, Pinned},
    program::Program,
};
use gpumem_core::{Backend, Error};
use gpumem_kernel::{In, Out, config_for_items};
use gpumem_runtime::memory::Trim;
use ndarray::{Ix1, aview1, s};
use std::{ops::ControlFlow, panic};

impl<B: Backend> Program<'_, B> {
    pub(crate) fn make(&mut self) {
        let (length, stream) = (self.random.length(), self.stream());
        let elements = self.random.words(length);
        let (array, elements) = match self.random.below(5) {
            0 => (self.device.to_device(&elements).unwrap(), elements),
            1 => (stream.to_device(&elements).unwrap(), elements),
            2 => (stream.device_array::<u32, _>(length).unwrap(), vec![0; length]),
            3 => (stream.uninit_array::<u32, _>(length).unwrap().fill(9).unwrap(), vec![9; length]),
            _ => {
                let mut pinned = self.device.pinned_array::<u32, _>(length).unwrap();
                pinned.view_mut().unwrap().assign(&aview1(&elements));
                let array = stream.to_device(&pinned).unwrap();
                if self.random.one_in(2) {
                    pinned.view_mut().unwrap().fill(self.random.word());
                }
                (array, elements)
            }
        };
        self.arrays.push(Known { array, model: elements.into_iter().map(Some).collect() });
    }

    pub(crate) fn fill(&mut self, at: usize) {
        let (value, stream) = (self.random.word(), self.stream());
        let step = 1 + usize::from(self.random.one_in(3));
        let range = self.random.range(self.arrays[at].model.len());
        self.say(format!("  fill {range:?} {step}"));
        let known = &mut self.arrays[at];
        let mut part = known.array.slice_mut(s![range.clone();step as isize]).unwrap();
        stream.fill(&mut part, value).unwrap();
        range.step_by(step).for_each(|element| known.model[element] = Some(value));
    }

    pub(crate) fn read(&mut self, at: usize) {
        let range = self.random.range(self.arrays[at].model.len());
        self.say(format!("  read {range:?}"));
        let known = &self.arrays[at];
        let is_reversed = self.random.one_in(3);
        let part = match is_reversed {
            true => known.array.slice(s![range.clone();-1]).unwrap(),
            false => known.array.slice(s![range.clone()]).unwrap(),
        };
        match (part.copy_to_host(), known.whole(range)) {
            (Ok(found), Some(mut expected)) => {
                if is_reversed {
                    expected.reverse();
                }
                assert!(found.to_vec() == expected, "seed {}", self.seed);
            }
            (Err(error), None) => self.is_refused(&error),
            (found, expected) => {
                panic!("seed {}: {:?} where {} is there", self.seed, found.map(drop), expected.is_some())
            }
        }
    }

    pub(crate) fn read_later(&mut self, at: usize) {
        let (stream, known) = (self.stream(), &self.arrays[at]);
        match (stream.copy_to_host(&known.array), known.all()) {
            (Ok(array), Some(elements)) => self.pinned.push(Pinned { array, elements }),
            // Something else that writes the array is under way, so that the device judges.
            (Ok(array), None) => {
                let Err(error) = array.view() else { panic!("seed {}: it can be read", self.seed) };
                self.is_refused(&error);
            }
            (Err(error), None) => self.is_refused(&error),
            (Err(error), Some(_)) => panic!("seed {}: {error}", self.seed),
        }
    }

    pub(crate) fn look_at_pinned(&mut self) {
        if !self.pinned.is_empty() {
            let pinned = &self.pinned[self.random.below(self.pinned.len())];
            assert!(pinned.array.view().unwrap().to_vec() == pinned.elements, "seed {}", self.seed);
        }
    }

    pub(crate) fn copy(&mut self, from: usize) {
        let (to, stream) = (self.random.below(self.arrays.len()), self.stream());
        let Ok([from, to]) = self.arrays.get_disjoint_mut([from, to]) else { return };
        let length = self.random.below(from.model.len().min(to.model.len()) + 1);
        let start = self.random.below(from.model.len() - length + 1);
        let target = self.random.below(to.model.len() - length + 1);
        let source = from.array.slice(s![start..start + length]).unwrap();
        let mut part = to.array.slice_mut(s![target..target + length]).unwrap();
        match (stream.copy_to_device(&mut part, &source), from.whole(start..start + length)) {
            (Ok(()), Some(elements)) => to.write(target, &elements),
            (Ok(()), None) => {
                to.model[target..target + length].fill(None);
                self.be_told();
            }
            (Err(error), None) => self.is_refused(&error),
            (Err(error), Some(_)) => panic!("seed {}: {error}", self.seed),
        }
    }

    pub(crate) fn launch_in_place(&mut self, at: usize) {
        let (number, stream) = (self.random.word(), self.stream());
        let known = &mut self.arrays[at];
        let range = self.random.range(known.model.len());
        let dims = config_for_items([range.len().max(1), 1, 1], [64, 1, 1]);
        let expected = known.whole(range.clone());
        let mut part = known.array.slice_mut(s![range.clone()]).unwrap();
        match (self.add.launch(&stream, &dims, (&mut part, number)), expected) {
            (Ok(()), Some(elements)) => {
                let added: Vec<u32> = elements.iter().map(|element| element.wrapping_add(number)).collect();
                known.write(range.start, &added);
            }
            (Ok(()), None) => {
                known.model[range].fill(None);
                self.be_told();
            }
            (Err(error), None) => self.is_refused(&error),
            (Err(error), Some(_)) => panic!("seed {}: {error}", self.seed),
        }
    }

    /// Whether an error names the failed work: at once, or when the turn of a read came.
    pub(crate) fn is_refused(&self, error: &Error) {
        assert!(error.to_string().contains("kernel \"bad\""), "seed {}: {error}", self.seed);
        self.be_told();
    }

    /// Waits for every stream, that of calls which name none too, so that each has told of its failure and goes on.
    pub(crate) fn be_told(&self) {
        for stream in self.streams.iter().chain(&self.device.default_stream()) {
            let _ = stream.synchronize();
        }
    }

    pub(crate) fn launch_on_host_arrays(&mut self) {
        let (count, stream) = (1 + self.random.below(500), self.stream());
        let (from, mut to) = (self.random.words(count), vec![7u32; count]);
        let dims = config_for_items([count, 1, 1], [64, 1, 1]);
        if self.random.one_in(2) {
            self.triple.launch(&stream, &dims, (In(&from), Out(&mut to))).unwrap();
        } else {
            let launched =
                stream.scope(|scope| self.triple.launch_in(scope, &dims, (In(&from), Out(&mut to))));
            launched.unwrap().unwrap();
        }
        assert!(from.iter().map(|element| element.wrapping_mul(3)).eq(to), "seed {}", self.seed);
    }

    pub(crate) fn read_in_scopes(&mut self, at: usize) {
        let (stream, other) = (self.stream(), self.stream());
        let known = &self.arrays[at];
        let range = self.random.range(known.model.len());
        let Some(elements) = known.all() else { return };
        let (mut whole, mut part) = (vec![0u32; elements.len()], vec![0u32; range.len()]);
        let copied = stream.scope(|scope| {
            scope.copy_to_host(&known.array, &mut whole[..])?;
            other.scope(|inner| inner.copy_to_host(&known.array.slice(s![range.clone()])?, &mut part[..]))?
        });
        copied.unwrap().unwrap();
        assert!(whole == elements && part == elements[range], "seed {}", self.seed);
    }

    pub(crate) fn upload(&mut self, at: usize) {
        let stream = self.stream();
        let range = self.random.range(self.arrays[at].model.len());
        let elements = self.random.words(range.len());
        let known = &mut self.arrays[at];
        let mut part = known.array.slice_mut(s![range.clone()]).unwrap();
        match self.random.one_in(2) {
            true => drop(part.copy_to_device(&elements).unwrap()),
            false => stream.copy_to_device(&mut part, &elements).unwrap(),
        }
        known.write(range.start, &elements);
    }

    /// A kernel that panics or goes out of bounds, and work after it; then a wait for its stream reports it.
    pub(crate) fn fail(&mut self, at: usize) {
        let (number, stream) = (self.random.word(), self.stream());
        let range = self.random.range(self.arrays[at].model.len());
        self.say(format!("  fail {range:?}"));
        let known = &mut self.arrays[at];
        if range.len() < 2 {
            return;
        }

        let is_whole = known.whole(range.clone()).is_some();
        let dims = config_for_items([range.len(), 1, 1], [64, 1, 1]);
        let mut part = known.array.slice_mut(s![range.clone()]).unwrap();
        let launched = self.bad.launch(&stream, &dims, (&mut part, number));
        if is_whole || launched.is_ok() {
            launched.unwrap();
        } else {
            return;
        }
        if self.random.one_in(2) {
            let other = &self.streams[self.random.below(self.streams.len())];
            let read = other.copy_to_host(&part).and_then(|pinned| pinned.view().map(|_| ()));
            assert!(read.is_err(), "seed {}", self.seed);
        }
        self.be_told();
        self.arrays[at].model[range].fill(None);
    }

    pub(crate) fn lend_or_clone(&mut self, at: usize) {
        let (stream, known) = (self.stream(), &mut self.arrays[at]);
        let Some(elements) = known.all() else {
            assert!(known.array.try_clone().is_err() && known.array.lend(&stream).is_err());
            return self.be_told();
        };
        if self.random.one_in(2) {
            let (array, model) = (known.array.try_clone().unwrap(), known.model.clone());
            return self.arrays.push(Known { array, model });
        }
        let loan = known.array.lend_mut(&stream).unwrap();
        let import = self.device.as_cuda_array::<u32, Ix1, _>(loan).unwrap();
        assert!(elements.is_empty() || import.is_read_only());
        if self.random.one_in(2) {
            assert!(import.copy_to_host().unwrap().to_vec() == elements, "seed {}", self.seed);
        } else if self.random.one_in(2) {
            let Known { array, model } = self.arrays.swap_remove(at);
            drop(array);
            let Ok(array) = import.try_into_array() else {
                panic!("seed {}: it is the only handle", self.seed)
            };
            self.arrays.push(Known { array, model });
        }
    }

    pub(crate) fn tidy(&mut self, at: usize) {
        match self.random.below(6) {
            0 => self.device.flush().unwrap(),
            1 => drop(self.device.trim(Trim::ALL).unwrap()),
            2 => self.device.synchronize().unwrap(),
            3 => {
                let _deferred = self.device.defer_cleanup();
                self.arrays.swap_remove(at);
            }
            4 => {
                let (stream, value) = (self.device.stream().unwrap(), self.random.word());
                let known = &mut self.arrays[at];
                stream.fill(&mut known.array, value).unwrap();
                known.model.fill(Some(value));
                if self.random.one_in(2) && self.seed.is_multiple_of(20) {
                    std::mem::forget(stream);
                }
            }
            _ => drop(self.device.memory_report().unwrap()),
        }
    }

    /// A download that is watched, and at times cancelled, or left by a panic.
    pub(crate) fn watch(&mut self, at: usize) {
        let (stops, panics) = (self.random.one_in(3), self.random.one_in(8));
        let known = &self.arrays[at];
        let Some(elements) = known.all() else { return };
        let mut copied = vec![1u32; elements.len()];
        let first = known.array.slice(s![..elements.len().min(3)]).unwrap();
        let watched = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            let watched = known.array.copy_to_host_with_progress(&mut copied[..], |_| {
                first.copy_to_host().unwrap();
                if panics {
                    panic::resume_unwind(Box::new("the program's"));
                }
                if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            watched.map(|_| ())
        }));
        if let Ok(Ok(())) = watched {
            assert_eq!(copied, elements, "seed {}", self.seed);
        }
    }
}
