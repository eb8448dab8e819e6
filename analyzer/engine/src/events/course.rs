//! When locations began and ended, as the critical path takes it.

use std::ops::ControlFlow;

use laggard_trace::calls::{self, Shape};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{Calls, Events, Item};

/// The time of a location. ns
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// Enter of its first call, or when it was started; `None` if there is none.
    pub begin: Option<i64>,
    /// Leave of its last call, or enter of its shutdown; `None` if there is none.
    pub end: Option<i64>,
    /// Whether it starts the library.
    pub starts_up: bool,
    /// Of a location without start-up of its own: when its rank was through the start-up; 0 if that
    /// is unknown.
    pub started: Option<i64>,
}

impl Events {
    /// The courses of all locations. Reads all calls.
    pub fn courses(&self) -> Vec<Course> {
        let mut of_ranks: FxHashMap<u32, i64> = FxHashMap::default();
        let bounds = self.opened.bounds.iter().zip(&self.clocks);
        let started = bounds.enumerate().map(|(at, (bounds, clock))| {
            let rank = self.place(at).rank;
            match bounds.started {
                Some(ticks) => {
                    of_ranks.entry(rank).or_insert(clock.ns(ticks));
                    None
                }
                None => Some(of_ranks.get(&rank).copied().unwrap_or(0)),
            }
        });
        let started: Vec<Option<i64>> = started.collect();
        let all = started.into_par_iter().enumerate();
        all.map(|(at, started)| self.course(at, started)).collect()
    }

    fn course(&self, location: usize, started: Option<i64>) -> Course {
        let clock = &self.clocks[location];
        let mut course = Course {
            begin: started,
            started,
            ..Course::default()
        };
        Calls::new(&self.opened.locations[location]).read(|item| {
            if let Item::Call(_, event, signature) = item {
                let shape = calls::call(signature.operation).map(|call| call.shape);
                let enter = clock.ns(event.enter);
                course.begin.get_or_insert(enter);
                course.starts_up |= shape == Some(Shape::Init);
                course.end = Some(match shape {
                    Some(Shape::Finalize) => enter,
                    _ => clock.ns(event.leave).max(enter),
                });
            }
            ControlFlow::Continue(())
        });
        course
    }
}
