//! The critical path on a time line: a track of its own, with arrows to the ranks' tracks.

use std::collections::VecDeque;
use std::io::Write;

use anyhow::Result;
use laggard_engine::events::{Events, Operation};
use laggard_perfetto::{Kind, Slice, Track, Value};
use laggard_trace::calls::Call;

use super::super::critical::Stretch;
use super::super::selection::Selection;
use super::{PATH, RUN, TimeLine};

/// The path, as far as it is drawn.
pub struct DrawnPath {
    stretches: Vec<Stretch>,
    /// By stretch: the flow to a call of its location.
    flows: Vec<u64>,
    /// Whether there is such a call.
    arrives: Vec<bool>,
}

impl DrawnPath {
    /// The drawn part of a path; `flow` numbers new flows.
    pub fn new(
        path: Vec<Stretch>,
        events: &Events,
        selection: &Selection,
        flow: impl FnMut() -> u64,
    ) -> DrawnPath {
        let is_drawn = |stretch: &Stretch| {
            selection.has_rank(events.place(stretch.location as usize).rank)
                && selection.has_time(stretch.from, stretch.until)
        };
        let stretches: Vec<Stretch> = path.into_iter().filter(is_drawn).collect();
        DrawnPath {
            flows: std::iter::repeat_with(flow).take(stretches.len()).collect(),
            arrives: vec![false; stretches.len()],
            stretches,
        }
    }

    /// Follows the calls of a location.
    pub fn follow(&self, location: usize) -> Following {
        let own = self.stretches.iter().enumerate();
        let own = own.filter(|(_, stretch)| stretch.location as usize == location);
        Following(own.map(|(at, stretch)| (at, *stretch)).collect())
    }

    /// The flow that ends in a call of this location, if it is the first one in its stretch.
    pub fn arrive(&mut self, following: &mut Following, call: &Operation) -> Option<u64> {
        let at = following.next(call)?;
        self.arrives[at] = true;
        Some(self.flows[at])
    }
}

/// The stretches of a location that calls are still to come in.
pub struct Following(VecDeque<(usize, Stretch)>);

impl Following {
    /// The number of the stretch in which this call is the first one, or which ends with it. An arrow
    /// needs some length.
    fn next(&mut self, call: &Operation) -> Option<usize> {
        // Regions enclose calls, and come after these.
        if call.call.is_some_and(Call::is_user) {
            return None;
        }
        while let Some((at, stretch)) = self.0.front().copied()
            && stretch.from < call.enter
        {
            self.0.pop_front();
            if call.enter <= stretch.until {
                return Some(at);
            }
        }
        None
    }
}

impl<W: Write + Send + 'static> TimeLine<'_, W> {
    /// Draws the critical path, after all locations.
    pub(super) fn critical_path(&mut self) -> Result<()> {
        let path = &self.path;
        if path.stretches.is_empty() {
            return Ok(());
        }
        self.writer.track(&Track {
            uuid: PATH,
            parent: Some(RUN),
            name: "critical path",
            description: "only what is on it makes the run shorter",
            order: PATH as i32,
        })?;
        let mut kinds = vec![None; self.events.locations()];
        let flows = path.flows.iter().zip(&path.arrives);
        for (stretch, (flow, arrives)) in path.stretches.iter().zip(flows) {
            let location = stretch.location as usize;
            let kind = match &mut kinds[location] {
                Some(kind) => kind,
                kind => {
                    let place = self.events.place(location);
                    kind.insert(self.writer.prepare(&Kind {
                        name: &self.names[location],
                        category: "critical path",
                        values: &[
                            ("rank", Value::Number(place.rank.into())),
                            ("thread", Value::Number(place.thread.into())),
                        ],
                        colour: None,
                    })?)
                }
            };
            self.writer.begin(&Slice {
                track: PATH,
                begin: stretch.from,
                kind,
                number: None,
                flows_from: if *arrives {
                    std::slice::from_ref(flow)
                } else {
                    &[]
                },
                flows_to: &[],
            })?;
            self.writer.end(PATH, stretch.until)?;
        }
        Ok(())
    }
}
