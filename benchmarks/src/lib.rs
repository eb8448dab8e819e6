//! Measurements of the collector and the analyzer.
//!
//! *Purpose.* Figures that the project promises, each measured in a way that holds on
//! a shared machine: things that are compared run in turns, medians count, and
//! results are ratios or differences of things of the same run.
//!
//! *Parts.* [`synthetic`] writes traces of programs that never ran, and what an analysis
//! must find in them. [`analysis`] measures the analyzer on them, [`exchange`] what other tools get of them. [`calls`] and [`bytes`]
//! measure the collector with small programs ([`micro`]). [`process`] runs what is
//! measured, [`table`] and [`runs`] print and keep what was found.
//!
//! *Not here.* Tests of results: those stand beside the code that they test.

pub mod analysis;
pub mod bytes;
pub mod calls;
pub mod detection;
pub mod exchange;
pub mod machine;
pub mod micro;
pub mod process;
pub mod runs;
pub mod scale;
pub mod synthetic;
pub mod table;
pub mod traces;
