//! What calls take by themselves, as recorded.

use anyhow::Result;
use laggard_engine::events::Events;
use rayon::prelude::*;

use crate::effects::Effects;
use crate::graph::{Consumer, Graph};
use crate::lane::Lane;
use crate::reader::Site;
use crate::shares::{Rest, Rests};

/// By signature.
type Sites = Vec<(Site, Rest)>;

/// The sums over the run.
///
/// # Errors
/// There is no room for temporary files.
pub fn rests(events: &Events, graph: &mut Graph) -> Result<Rests> {
    let nothing = Effects::default();
    let locations = 0..events.locations();
    let lanes = locations.map(|location| Lane::new(events, &nothing, location, None, 0));
    let mut lanes: Vec<Lane> = lanes.collect();
    let mut rests: Vec<Sites> = lanes.iter().map(|_| Sites::default()).collect();
    for (slab, end) in graph.consumers.ends().into_iter().enumerate() {
        (graph.goes_on)()?;
        graph.consumers.read(slab, |row| {
            let consumer = Consumer::of(row);
            lanes[consumer.location as usize].needs(consumer);
        })?;
        let lanes = lanes.par_iter_mut().zip(&mut rests);
        lanes.for_each_init(Vec::new, |needed, (lane, rests)| {
            until(end, lane, needed, rests)
        });
    }
    let mut all = Rests::default();
    for (location, sites) in (0..).zip(rests) {
        for (site, rest) in sites {
            all.entry((location, site)).or_default().add(&rest);
        }
    }
    Ok(all)
}

/// Adds up the calls of a location that end before `end`, ns.
fn until(end: i64, lane: &mut Lane, needed: &mut Vec<Consumer>, rests: &mut Sites) {
    lane.settle();
    while let Some(call) = lane.next.take().or_else(|| lane.reader.next()) {
        if call.leave >= end {
            lane.next = Some(call);
            break;
        }
        lane.needed(&call, needed);
        let times = needed.iter().map(|of| of.time.min(call.leave));
        let begin = times.fold(call.enter, i64::max);
        let rest = call.leave - begin;
        let at = call.signature as usize;
        if rests.len() <= at {
            rests.resize_with(at + 1, Default::default);
        }
        let (site, sums) = &mut rests[at];
        *site = call.kind.site;
        sums.add(&Rest {
            all: rest,
            off: call.off.map(|off| off.clamp(0, rest.max(0))),
        });
    }
}
