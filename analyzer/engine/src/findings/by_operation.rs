//! Time by function over all places. The size grows with the functions, not with places or ranks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use laggard_patterns::PatternId;
use laggard_report::{OperationTimes, Region, seconds};
use laggard_trace::calls;

use crate::findings::fold::Folded;
use crate::input::bounds::is_init;
use crate::judge::profile::Profile;
use crate::stream::rows::TimeClass;
use crate::waits::sums::FindingKey;

/// Sums over the calls of one function. ns.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    calls: u64,
    total: u64,
    waiting: u64,
    /// Time charged by findings.
    charged: u64,
    /// Wait states in the calls.
    waits: u64,
}

/// The rows of the report. An operation that is a region contains other calls: its row has only its
/// own time, from `regions`, so that all rows add up to the time inside calls. `caused`: wait states by
/// the late call.
pub fn rows<'f>(
    profile: &Profile,
    findings: impl Iterator<Item = (&'f FindingKey, &'f Folded)>,
    regions: &[Region],
    caused: &BTreeMap<u16, u64>,
) -> Vec<OperationTimes> {
    let mut by_function: BTreeMap<u16, Sums> = BTreeMap::new();
    for (&(operation, _), sums) in profile {
        let own = by_function.entry(operation).or_default();
        own.calls = own.calls.saturating_add(sums.count);
        // Start-up and shut-down are reported separately.
        let measured = sums.total.saturating_sub(sums.ends);
        own.total = own.total.saturating_add(measured);
    }
    for (&(pattern, operation, _), sums) in findings {
        let own = by_function.entry(operation).or_default();
        own.charged = own.charged.saturating_add(sums.severity);
        if PatternId::from_number(pattern).is_some_and(PatternId::is_waiting) {
            own.waiting = own.waiting.saturating_add(sums.severity);
            own.waits = own.waits.saturating_add(sums.instances);
        }
    }
    by_function.retain(|&number, _| !is_init(number));
    let mut rows: Vec<(u64, OperationTimes)> = Vec::new();
    for (number, sums) in by_function {
        let Some(call) = calls::call(number) else {
            continue;
        };
        let name = calls::name(number);
        let as_region = regions
            .iter()
            .filter(|region| region.operation_type.is_some() && region.region == name);
        let total_s = match call.is_user() {
            true => as_region.map(|region| region.exclusive_s).sum(),
            false => seconds(sums.total),
        };
        let time = match TimeClass::of(number) {
            TimeClass::Communication | TimeClass::Setup => "communication",
            TimeClass::Synchronization => "synchronization",
            TimeClass::Io => "io",
        };
        let row = OperationTimes {
            operation: name.to_owned(),
            operation_type: call.generic.name().to_owned(),
            time: time.to_owned(),
            calls: sums.calls,
            total_s,
            wait_s: seconds(sums.waiting),
            waits: Some(sums.waits),
            caused_waits: Some(caused.get(&number).copied().unwrap_or(0)),
            cost_s: (!call.is_user()).then(|| seconds(sums.total.saturating_sub(sums.charged))),
        };
        rows.push((sums.total, row));
    }
    rows.sort_by(|a, b| (Reverse(a.0), &a.1.operation).cmp(&(Reverse(b.0), &b.1.operation)));
    rows.into_iter().map(|(_, row)| row).collect()
}
