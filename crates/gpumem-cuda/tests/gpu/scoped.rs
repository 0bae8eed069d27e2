//! Downloads inside a scope that are longer than the staging memory they may take.

use crate::{Case, Skip, fixture::Lab};
use gpumem_core::MemoryKind;
use gpumem_cuda::Cuda;
use gpumem_runtime::{
    Device,
    memory::{MemoryResource, StatisticsResource},
};
use ndarray::{Array2, s};
use std::sync::Arc;

pub(crate) const CASES: &[Case] =
    &[("a_scoped_download_of_4_gib_stays_within_the_bound", stays_within_the_bound)];

/// Rows of 64 MiB, 4 GiB together.
const ROWS: usize = 64;
const COLUMNS: usize = 16 << 20;

fn stays_within_the_bound(_: &Lab) -> Result<(), Skip> {
    let device: Device<Cuda> = Device::open("cuda:0").unwrap();
    if device.memory_info().unwrap().free < 5 << 30 {
        return Err("less than 5 GiB of memory are free");
    }
    let stream = device.stream().unwrap();
    let mut array = stream.device_array::<u32, _>((ROWS, COLUMNS)).unwrap();
    for row in 0..ROWS {
        stream.fill(&mut array.slice_mut(s![row, ..]).unwrap(), row as u32 + 1).unwrap();
    }
    device.flush().unwrap();
    let pool = device.memory_resource(MemoryKind::Pinned).unwrap();
    let counting = Arc::new(StatisticsResource::new(pool.clone()));
    device.set_memory_resource(MemoryKind::Pinned, counting.clone()).unwrap();
    let mut found = Array2::<u32>::zeros((ROWS, COLUMNS));
    stream
        .scope(|scope| {
            scope.copy_to_host(&array, found.view_mut())?;
            // After the copy in the stream: it changes nothing that arrives.
            stream.fill(&mut array, 0)
        })
        .unwrap()
        .unwrap();
    device.set_memory_resource(MemoryKind::Pinned, pool).unwrap();
    for (row, found) in found.rows().into_iter().enumerate() {
        assert!(found.iter().all(|value| *value == row as u32 + 1), "row {row}");
    }
    let (peak, bound) =
        (counting.statistics().peak_allocated.unwrap(), device.transfer_options().scoped_staging_bytes());
    println!("    {} MiB of staging memory for 4 GiB", peak >> 20);
    assert!(peak <= bound, "{peak} bytes, where {bound} are allowed");
    assert_eq!(device.take_errors(), []);
    Ok(())
}
