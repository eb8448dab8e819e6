//! Measurements of the collector and the analyzer.
//!
//! *Purpose.* Figures that the project promises, each measured in a way that holds on a shared
//! machine: variants run in turns, medians count, and results are ratios or differences within one
//! run.
//!
//! *Parts.* [`analysis`] measures the analyzer on generated traces (`laggard-generator`),
//! [`exchange`] exports and imports. [`calls`] and [`bytes`] measure the collector with small
//! programs ([`micro`]). [`process`] runs commands, [`table`] prints the figures and [`runs`] keeps
//! them.
//!
//! *Not here.* Tests of results: they stand beside the code that they test.

pub mod analysis;
pub mod bytes;
pub mod calls;
pub mod detection;
pub mod exchange;
pub mod follow;
pub mod machine;
pub mod micro;
pub mod overlay;
pub mod process;
pub mod runs;
pub mod sampling;
pub mod scale;
pub mod table;
pub mod traces;
pub mod zoom;
