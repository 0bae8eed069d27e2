//! Arrays that host and device both see: mapped, managed, and the caller's own while it is page-locked.

use crate::{
    model::Random,
    program::{Add, Program},
};
use gpumem_core::{Attach, Backend, MappedOptions};
use gpumem_kernel::{Kernel, config_for_items};
use gpumem_runtime::{DeviceArray, DeviceVisible, HostArray, Managed, Mapped, MappedRegisteredArray, Stream};
use ndarray::{Array1, Ix1, aview1, s};

/// An array of the library's, and its elements.
pub(crate) struct Seen<K: DeviceVisible, B: Backend> {
    array: HostArray<K, u32, Ix1, B>,
    model: Vec<u32>,
}

/// The host arrays of a program.
pub(crate) struct Hosts<B: Backend> {
    mapped: Option<Seen<Mapped, B>>,
    managed: Option<Seen<Managed, B>>,
    registered: Option<(MappedRegisteredArray<u32, Ix1, B>, Vec<u32>)>,
}

impl<B: Backend> Hosts<B> {
    pub(crate) fn new() -> Self {
        Self { mapped: None, managed: None, registered: None }
    }
}

/// Uses an array by the host and by the device in turns.
fn use_both<K: DeviceVisible, B: Backend>(
    array: &mut HostArray<K, u32, Ix1, B>,
    model: &mut [u32],
    random: &mut Random,
    stream: &Stream<B>,
    add: &Kernel<Add, B>,
) {
    let range = random.range(model.len());
    let word = random.word();
    match random.below(6) {
        0 => {
            array.view_mut().unwrap().slice_mut(s![range.clone()]).fill(word);
            model[range].fill(word);
        }
        1 => {
            let mut part = array.device_view_mut();
            stream.fill(&mut part.slice_mut(s![range.clone()]).unwrap(), word).unwrap();
            model[range].fill(word);
        }
        2 => {
            let dims = config_for_items([range.len().max(1), 1, 1], [32, 1, 1]);
            let mut view = array.device_view_mut();
            add.launch(stream, &dims, (&mut view.slice_mut(s![range.clone()]).unwrap(), word)).unwrap();
            model[range].iter_mut().for_each(|element| *element = element.wrapping_add(word));
        }
        3 => {
            let words = random.words(model.len());
            array.copy_from(&words).unwrap();
            model.copy_from_slice(&words);
        }
        4 => {
            let copy: DeviceArray<u32, Ix1, B> = stream.to_device(&array.device_view()).unwrap();
            assert!(copy.copy_to_host().unwrap().to_vec() == model);
        }
        _ => assert_eq!(array.view().unwrap(), aview1(model)),
    }
}

impl<B: Backend> Program<'_, B> {
    /// Uses, makes or drops one of the arrays.
    pub(crate) fn use_seen(&mut self) {
        let (length, stream, choice) = (self.random.length() % 5000, self.stream(), self.random.below(3));
        let renew = self.random.one_in(6);
        let Self { device, random, add, hosts, .. } = self;
        match choice {
            0 => {
                hosts.mapped.take_if(|_| renew);
                let Seen { array, model } = hosts.mapped.get_or_insert_with(|| Seen {
                    array: device.mapped_array(length, MappedOptions::default()).unwrap(),
                    model: vec![0; length],
                });
                use_both(array, model, random, &stream, add);
            }
            1 => {
                hosts.managed.take_if(|_| renew);
                let Seen { array, model } = hosts.managed.get_or_insert_with(|| Seen {
                    array: device.managed_array(length, Attach::Global).unwrap(),
                    model: vec![0; length],
                });
                use_both(array, model, random, &stream, add);
            }
            _ => {
                // Drops it with work under way, or deregisters it.
                if let Some((array, model)) = hosts.registered.take_if(|_| renew)
                    && random.one_in(2)
                {
                    let array = array.deregister().map_err(|refused| refused.error).unwrap();
                    assert!(array.to_vec() == model);
                }
                let (array, model) = hosts.registered.get_or_insert_with(|| {
                    let model = random.words(length);
                    let array = Array1::from_vec(model.clone());
                    (device.register_mapped(array).map_err(|refused| refused.error).unwrap(), model)
                });
                use_both(array, model, random, &stream, add);
            }
        }
    }

    /// Locks arrays of the caller for a scope, copies into them and out of them, and looks at them afterwards.
    pub(crate) fn lock(&mut self, at: usize) {
        let (stream, other) = (self.stream(), self.stream());
        let Some(elements) = self.arrays[at].all() else { return };
        let (value, panics) = (self.random.word(), self.random.one_in(8));
        let (known, device) = (&self.arrays[at], self.device);
        let mut one = Array1::<u32>::zeros(elements.len());
        let mut two = Array1::<u32>::zeros(elements.len());
        if panics {
            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                device.pinned([one.view_mut()], |[locked]| {
                    stream.copy_to_host_into(&known.array, locked).unwrap();
                    std::panic::resume_unwind(Box::new("the program's"));
                })
            }));
            assert!(unwound.is_err());
        } else {
            let locked = device.pinned([one.view_mut(), two.view_mut()], |[one, two]| {
                stream.copy_to_host_into(&known.array, one)?;
                let copy = other.to_device(one)?;
                other.copy_to_host_into(&copy, two)
            });
            locked.unwrap().unwrap();
            assert!(two.to_vec() == elements, "seed {}", self.seed);
        }
        assert!(one.to_vec() == elements, "seed {}", self.seed);
        let scoped = stream.scope(|scope| {
            let mut mapped = scope.mapped(two.view_mut())?;
            other.fill(&mut mapped.device_view_mut(), value)?;
            scope.copy_to_host(&mapped.device_view(), one.view_mut())
        });
        scoped.unwrap().unwrap();
        assert!(one.iter().chain(&two).all(|element| *element == value), "seed {}", self.seed);
    }
}
