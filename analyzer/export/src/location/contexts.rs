//! Calling contexts, and samples in them.
//!
//! OTF2 has samples only in archives whose regions are calling contexts, too: a call names the whole path that
//! leads to it, so that no region around it is entered or left.

use anyhow::Result;
use laggard_engine::symbols::shown;
use laggard_otf2::definitions::UNDEFINED;
use laggard_otf2::events::{Event, Told};
use laggard_trace::{Event as Recorded, MOMENT};
use rustc_hash::FxHashMap;

use super::{State, Writer};

/// Most periods that a sample stands for.
const MOST_PERIODS: u64 = 1000;

/// Where a location is.
#[derive(Debug)]
pub(super) struct At {
    /// The calling context of the last event.
    last: u32,
    /// That of what encloses the next call, and of the regions entered in it.
    open: Vec<u32>,
    /// By call path: its calling context.
    paths: Vec<Option<u32>>,
    /// Samples that are not written yet: time, ns, and call path.
    samples: Vec<(u64, u32)>,
}

impl Default for At {
    fn default() -> At {
        At {
            last: UNDEFINED,
            open: Vec::new(),
            paths: Vec::new(),
            samples: Vec::new(),
        }
    }
}

impl Writer<'_> {
    /// The calling context of a call path.
    fn context_of(&mut self, state: &mut State, path: u32) -> u32 {
        let known = state.at.paths.get(path as usize).copied().flatten();
        if let Some(known) = known.or((path == 0).then_some(UNDEFINED)) {
            return known;
        }
        let definitions = &self.traced.location.definitions;
        let lines = self.symbols.resolve_call_path(definitions, path);
        let lines: Vec<_> = shown(&lines).collect();
        let mut context = UNDEFINED;
        for line in lines.into_iter().rev() {
            let (function, file) = (line.function.as_bytes(), line.file.as_bytes());
            let region = match line.is_region() {
                true => self.names.named(function),
                false => self.names.function(function, file, line.line),
            };
            context = self.names.context(region, (file, line.line), context);
        }
        let paths = &mut state.at.paths;
        if paths.len() <= path as usize {
            paths.resize(path as usize + 1, None);
        }
        paths[path as usize] = Some(context);
        context
    }

    /// The next region is entered from this call path.
    pub(super) fn be_at(&mut self, state: &mut State, path: u32) {
        let context = self.context_of(state, path);
        state.at.open = vec![context];
    }

    /// A region is entered: its event.
    pub(super) fn enters(&mut self, state: &mut State, region: u32, told: &Told) -> Event {
        let around = state.at.open.last().copied().unwrap_or(UNDEFINED);
        let context = self.names.context(region, (b"", 0), around);
        let distance = self.names.distance(state.at.last, context);
        state.at.open.push(context);
        state.at.last = context;
        Event::EnterContext(context, distance, Box::new(*told))
    }

    /// The innermost region is left: its event.
    pub(super) fn leaves(&mut self, state: &mut State) -> Event {
        let context = state.at.open.pop().unwrap_or(UNDEFINED);
        state.at.last = state.at.open.last().copied().unwrap_or(UNDEFINED);
        Event::LeaveContext(context)
    }

    /// Takes the samples before a call, to be written with it. One that stands for several periods is as many in
    /// the archive.
    pub(super) fn take_samples(&mut self, state: &mut State, event: &Recorded) {
        if !self.has_contexts {
            return;
        }
        // By call path: samples, those of them that were taken, and ticks.
        let mut paths: FxHashMap<u32, (u64, u64, u64)> = FxHashMap::default();
        for &(path, _) in &event.moments {
            paths.entry(path).or_default().0 += 1;
        }
        for &(path, ticks) in &event.sampled {
            paths.entry(path).or_default().2 += u64::from(ticks);
        }
        for &(path, before) in &event.moments {
            let (all, place, ticks) = paths.entry(path).or_default();
            let periods = self.traced.length_ns(*ticks) / self.period.max(1) as f64;
            let periods = (periods.round() as u64).min(all.saturating_mul(MOST_PERIODS));
            let (all, place) = (*all, std::mem::replace(place, *place + 1));
            // Shared out evenly among the samples of the call path.
            let own = periods * (place + 1) / all - periods * place / all;
            let ticks = event.enter.saturating_sub(u64::from(before) * MOMENT);
            let time = self.traced.ns(ticks).max(0) as u64;
            let own = std::iter::repeat_n((time, path), own as usize);
            state.at.samples.extend(own);
        }
    }

    /// Writes them.
    pub(super) fn write_samples(&mut self, state: &mut State) -> Result<()> {
        for (time, path) in std::mem::take(&mut state.at.samples) {
            let context = self.context_of(state, path);
            let distance = self.names.distance(state.at.last, context);
            state.at.last = context;
            state.last = state.last.max(time);
            self.put(state.last, &Event::Sample(context, distance))?;
        }
        Ok(())
    }
}
