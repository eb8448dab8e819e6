//! What calls take by themselves, as recorded.

use anyhow::Result;
use laggard_engine::events::Events;
use rustc_hash::FxHashMap;

use crate::effects::Effects;
use crate::graph::{Consumer, Graph};
use crate::lane::Lane;
use crate::shares::{Rest, Rests};

/// The sums over the run.
///
/// # Errors
/// There is no room for temporary files.
pub fn rests(events: &Events, graph: &mut Graph) -> Result<Rests> {
    let (mut rests, nothing) = (FxHashMap::default(), Effects::default());
    let locations = 0..events.locations();
    let lanes = locations.map(|location| Lane::new(events, &nothing, location, None, 0));
    let mut lanes: Vec<Lane> = lanes.collect();
    let mut needed = Vec::new();
    for (slab, end) in graph.consumers.ends().into_iter().enumerate() {
        graph.consumers.read(slab, |row| {
            let consumer = Consumer::of(row);
            lanes[consumer.location as usize].needs(consumer);
        })?;
        for lane in &mut lanes {
            lane.settle();
            while let Some(call) = lane.next.take().or_else(|| lane.reader.next()) {
                if call.leave >= end {
                    lane.next = Some(call);
                    break;
                }
                lane.needed(&call, &mut needed);
                let times = needed.iter().map(|of| of.time.min(call.leave));
                let begin = times.fold(call.enter, i64::max);
                let rest = call.leave - begin;
                let sums: &mut Rest = rests.entry((lane.location, call.kind.site)).or_default();
                sums.all += rest;
                for (sum, off) in sums.off.iter_mut().zip(call.off) {
                    *sum += off.clamp(0, rest.max(0));
                }
            }
        }
    }
    Ok(rests)
}
