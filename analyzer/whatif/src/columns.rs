//! Columns of times that are replayed together.

use std::ops::Range;

use crate::marks::{Marks, numbers};

/// Columns of times: as recorded …
pub const RECORDED: usize = 0;
/// … replayed with nothing changed …
pub const UNCHANGED: usize = 1;
/// … the same on an ideal network, and then the scenarios.
const SCENARIOS: usize = 3;

/// Which times are replayed.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    pub scenarios: usize,
    /// Whether all that is needed for efficiencies and waits of the scenarios is replayed as well.
    pub is_whole: bool,
}

impl Columns {
    pub fn new(scenarios: usize, is_whole: bool) -> Columns {
        Columns {
            scenarios,
            is_whole,
        }
    }

    pub fn count(self) -> usize {
        self.of(self.scenarios)
    }

    /// The column of a scenario.
    pub fn of(self, scenario: usize) -> usize {
        SCENARIOS + scenario * (1 + usize::from(self.is_whole))
    }

    /// The column of the same on an ideal network.
    pub fn ideal(self, column: usize) -> Option<usize> {
        (column == UNCHANGED || self.is_whole).then_some(column + 1)
    }

    /// All columns of a scenario.
    pub fn range(self, scenario: usize) -> Range<usize> {
        self.of(scenario)..self.of(scenario + 1)
    }

    /// The scenarios with these marks.
    pub fn marked(self, marks: Marks) -> impl Iterator<Item = usize> {
        numbers(marks).take_while(move |&scenario| scenario < self.scenarios)
    }

    /// Whether transfers take no time in a column, and no sender waits for its receiver.
    pub fn is_ideal(self, column: usize) -> bool {
        match column.checked_sub(SCENARIOS) {
            None => column > UNCHANGED,
            Some(at) => self.is_whole && at % 2 == 1,
        }
    }
}
