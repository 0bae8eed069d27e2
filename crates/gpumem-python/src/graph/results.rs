//! What a body returns, and each launch makes anew.

use super::members::{Sequence, Visited, Visit};
use crate::{device_array::DeviceNDArray, element::DType, pinned::HostNDArray};
use gpumem::{DeviceViewMut, Layout, PinnedArray, ndarray::IxDyn};
use pyo3::{exceptions::PyTypeError, prelude::*};

/// The bytes of device arrays and of page-locked arrays.
pub(super) type Results = (Vec<DeviceViewMut<'static, u8, IxDyn>>, Vec<PinnedArray<u8, IxDyn>>);

/// The objects that a body has returned.
pub(super) struct Returned {
    tree: Tree,
    arrays: Vec<Array>,
}

enum Tree {
    None,
    /// The array of that number. An object that comes twice is one array.
    Array(usize),
    Several(Vec<Tree>, Sequence),
}

/// An array among its bytes.
enum Array {
    Device { dtype: DType, layout: Layout, read_only: bool },
    Pinned { dtype: DType, held: Layout },
}

#[derive(Default)]
struct Collector<'py> {
    seen: Vec<Bound<'py, PyAny>>,
    arrays: Vec<Array>,
    results: Results,
}

impl<'py> Collector<'py> {
    fn add(&mut self, object: &Bound<'py, PyAny>, visit: Visit<'_>) -> PyResult<Tree> {
        if object.is_none() {
            return Ok(Tree::None);
        }
        if let Some((kind, all, visit)) = visit.members(object)? {
            let all = all.iter().map(|one| self.add(one, visit)).collect::<PyResult<_>>()?;
            return Ok(Tree::Several(all, kind));
        }
        if let Some(at) = self.seen.iter().position(|seen| seen.is(object)) {
            return Ok(Tree::Array(at));
        }
        let array = self.array(object)?;
        self.arrays.push(array);
        self.seen.push(object.clone());
        Ok(Tree::Array(self.arrays.len() - 1))
    }

    fn array(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Array> {
        let py = object.py();
        if let Ok(array) = object.cast::<DeviceNDArray>() {
            let array = array.get();
            self.results.0.push(array.bytes()?);
            let (dtype, layout) = (array.dtype.clone_ref(py), array.layout()?);
            return Ok(Array::Device { dtype, layout, read_only: array.read_only });
        }
        if let Ok(host) = object.cast::<HostNDArray>()
            && let Some((bytes, held)) = host.get().bytes(py)?
        {
            self.results.1.push(bytes);
            return Ok(Array::Pinned { dtype: host.get().dtype().clone_ref(py), held });
        }
        let text = "the body of a graph returns device arrays and page-locked arrays, None, and tuples and lists of them";
        Err(PyTypeError::new_err(format!("{text}, not {}", object.get_type().name()?)))
    }
}

impl Returned {
    /// Takes what a body returns.
    pub(super) fn of(made: &Bound<'_, PyAny>) -> PyResult<(Self, Results)> {
        let mut collector = Collector::default();
        let tree = collector.add(made, Visit::new(&Visited::default()))?;
        Ok((Self { tree, arrays: collector.arrays }, collector.results))
    }

    /// The same objects over the memory of a launch.
    pub(super) fn over<'py>(&self, py: Python<'py>, (device, pinned): Results) -> PyResult<Bound<'py, PyAny>> {
        let (mut device, mut pinned, mut made) = (device.into_iter(), pinned.into_iter(), Vec::new());
        let missing = || PyTypeError::new_err("the graph has other results");
        for array in &self.arrays {
            made.push(match array {
                Array::Device { dtype, layout, read_only } => {
                    let bytes = device.next().ok_or_else(missing)?;
                    let bytes = DeviceNDArray::new(bytes.into(), DType::bytes(1));
                    let array = bytes.at(layout, dtype.clone_ref(py))?;
                    let array = if *read_only { array.into_read_only() } else { array };
                    Bound::new(py, array)?.into_any()
                }
                Array::Pinned { dtype, held } => {
                    let bytes = pinned.next().ok_or_else(missing)?;
                    let array = HostNDArray::over(&bytes, held.clone(), dtype.clone_ref(py))?;
                    Bound::new(py, array)?.into_any()
                }
            });
        }
        self.tree.over(py, &made)
    }
}

impl Tree {
    fn over<'py>(&self, py: Python<'py>, made: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::None => Ok(py.None().into_bound(py)),
            Self::Array(at) => {
                let missing = || PyTypeError::new_err("the graph has other results");
                made.get(*at).cloned().ok_or_else(missing)
            }
            Self::Several(all, kind) => {
                let all = all.iter().map(|one| one.over(py, made)).collect::<PyResult<_>>()?;
                kind.over(py, all)
            }
        }
    }
}
