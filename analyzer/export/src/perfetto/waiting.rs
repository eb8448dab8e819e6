//! Waits on a time line, and what ranks waited for in the end.

use std::io::Write;

use anyhow::Result;
use laggard_engine::events::{LateCall, Wait};
use laggard_patterns::PatternId;
use laggard_perfetto::{Kind, Slice, Track, Value};
use laggard_report::layout::GLUE;
use laggard_report::units::duration;
use laggard_report::words;
use laggard_trace::calls;

use super::super::roots::title;
use super::chains::Cause;
use super::links::{Loss, span};
use super::{FIRST, MOST_KINDS, TimeLine, track_of};

/// What is said of a loss: pattern, rank, call and call path of the late call, root cause.
pub type LossKind = (u8, Option<(u32, u16, u32)>, Option<usize>);

impl<W: Write + Send + 'static> TimeLine<'_, W> {
    /// Draws what others waited for in the end, on a track of its own.
    pub(super) fn root_causes(&mut self, at: usize) -> Result<()> {
        let causes = &self.causes[at];
        if causes.is_empty() {
            return Ok(());
        }
        let track = FIRST + (self.events.locations() + at) as u64;
        self.writer.track(&Track {
            uuid: track,
            parent: Some(track_of(at)),
            name: "root causes",
            description: "what others waited for in the end",
            order: 0,
        })?;
        causes.iter().try_for_each(|cause| self.cause(track, cause))
    }

    fn cause(&mut self, track: u64, cause: &Cause) -> Result<()> {
        let (root, begin, end) = cause.stretch;
        if self.kinds[root].is_none() {
            let found = &self.roots.all[root];
            let what = words::root_cause(found).replace(GLUE, " ");
            let waiting = duration(found.severity_s).replace(GLUE, " ");
            let mut values = vec![
                ("what", Value::Text(&what)),
                ("starts waiting of", Value::Text(&waiting)),
            ];
            values.extend(found.hints.first().map(|hint| ("try", Value::Text(hint))));
            self.kinds[root] = Some(self.writer.prepare(&Kind {
                name: &title(found),
                category: "root cause",
                values: &values,
                colour: None,
            })?);
        }
        if let Some(kind) = &self.kinds[root] {
            self.writer.begin(&Slice {
                track,
                begin,
                kind,
                number: None,
                flows_from: &cause.flows,
                flows_to: &[],
            })?;
        }
        Ok(self.writer.end(track, end)?)
    }

    /// Draws a call's loss, after `free`; returns its end.
    pub(super) fn wait(&mut self, track: u64, loss: &Loss, free: i64) -> Result<i64> {
        let wait = &loss.wait;
        let (begin, end) = span(wait);
        let (begin, end) = (begin.max(free), end.max(free));
        // An arrow from a root cause that began later goes to the end of the wait.
        let (before, later) = match loss.root {
            Some((flow, from)) if from < begin => (Some(flow), None),
            root => (None, root.map(|(flow, _)| flow)),
        };
        let late = |late: LateCall| (late.rank, late.call, late.call_path);
        let root = self.roots.of_wait(wait.pattern, wait.call, wait.call_path);
        let kind = (wait.pattern, wait.cause.map(late), root);
        if !self.losses.contains_key(&kind) {
            self.prepare_loss(wait, kind)?;
        }
        self.writer.begin(&Slice {
            track,
            begin,
            kind: &self.losses[&kind],
            number: Some((self.lost, wait.lost)),
            flows_from: loss.hop.as_slice(),
            flows_to: before.as_slice(),
        })?;
        if let Some(flow) = later {
            self.writer.instant(&Slice {
                track,
                begin: end,
                kind: &self.started,
                number: None,
                flows_from: &[],
                flows_to: &[flow],
            })?;
        }
        self.writer.end(track, end)?;
        self.waits += 1;
        Ok(end)
    }

    /// Prepares the details of losses of one pattern with one cause.
    fn prepare_loss(&mut self, wait: &Wait, kind: LossKind) -> Result<()> {
        let pattern = PatternId::from_number(wait.pattern);
        let pattern = pattern.map_or("waiting", PatternId::name);
        let mut values = Vec::new();
        let mut name = pattern.to_owned();
        if let Some((rank, call, path)) = kind.1 {
            let place = &self.places[path as usize];
            values.push(("late rank", Value::Number(i64::from(rank))));
            values.push(("late call", Value::Text(calls::name(call))));
            values.push(("late where", Value::Text(place)));
            name = format!("{pattern}: rank {rank} in {} {place}", calls::name(call));
        }
        let root = kind.2.map(|at| &self.roots.all[at]);
        let root = root.map(|root| format!("{}: {}", root.id, words::root_cause(root)));
        let root = root.map(|text| text.replace(GLUE, " "));
        values.extend(root.as_ref().map(|text| ("root cause", Value::Text(text))));
        let prepared = self.writer.prepare(&Kind {
            name: name.trim_end(),
            category: "wait",
            values: &values,
            colour: Some(colour(wait)),
        })?;
        if self.losses.len() >= MOST_KINDS {
            self.losses.clear();
        }
        self.losses.insert(kind, prepared);
        Ok(())
    }
}

/// Waits of one pattern because of one call of the program share a colour.
fn colour(wait: &Wait) -> u64 {
    let cause = wait.cause.map_or(0, |late| u64::from(late.call_path) + 1);
    u64::from(wait.pattern) << 32 | cause
}
