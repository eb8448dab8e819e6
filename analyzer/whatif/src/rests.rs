//! What calls take by themselves, as recorded.

use anyhow::Result;
use laggard_engine::events::Events;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::effects::Effects;
use crate::graph::{Consumer, Graph};
use crate::lane::Lane;
use crate::reader::Site;
use crate::shares::{Rest, Rests};

/// By call and its call path.
type Sites = FxHashMap<Site, Rest>;

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
    let of_location = |(location, sites): (u32, Sites)| {
        let sites = sites.into_iter();
        sites.map(move |(site, rest)| ((location, site), rest))
    };
    Ok((0..).zip(rests).flat_map(of_location).collect())
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
        let sums = rests.entry(call.kind.site).or_default();
        sums.all += rest;
        for (sum, off) in sums.off.iter_mut().zip(call.off) {
            *sum += off.clamp(0, rest.max(0));
        }
    }
}
