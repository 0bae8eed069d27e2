//! A backend that is written against gpumem-core alone is brought up level by level.

use crate::alone;
use gpumem_conformance::{RanOn, Selection, Suite};
use gpumem_runtime::Device;
use host_double::{ThirdParty, ThirdPartyDevice};

fn suite() -> Suite<ThirdParty> {
    Suite::new("double", RanOn::Host)
        .second_device(|_| ThirdPartyDevice::adversarial(1).ok().map(Device::from_raw))
}

#[test]
fn each_level_adds_cases_and_all_pass() {
    let _alone = alone();
    let mut before = 0;
    for level in [1, 2, 5] {
        let report = suite().run(&Selection { level: Some(level), ..Selection::default() }, |_, _| {});
        assert_eq!(report.failures, [""; 0], "level {level}");
        assert!(report.passed > before, "level {level} adds cases");
        assert!(report.outcomes.iter().all(|(name, _)| name[..2].parse::<u8>().unwrap() <= level));
        assert!(report.device.as_deref().unwrap().starts_with("double:0"));
        before = report.passed;
    }
}
