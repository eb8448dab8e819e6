//! What pages are told of a program that is followed, without asking.

use serde::Serialize;

use crate::steer::Row;

/// How a program goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct News {
    /// Grows whenever there is more to be shown.
    pub number: u64,
    /// Whether the program still runs.
    pub runs: bool,
    /// What is known until when, s since the start of the run.
    pub end_s: f64,
    /// Locations by now.
    pub locations: usize,
    /// How it goes on.
    pub text: String,
    /// Ranks that wait for each other, so that none can go on.
    pub hangs: Vec<String>,
    /// Whether pages may steer the recording.
    pub steers: bool,
    /// What is wanted of the recording, where that was changed.
    pub wanted: Vec<Row>,
    /// Rows that there are of that.
    pub wanted_in_all: usize,
    /// Calls that last, those that began first before others.
    pub calls: Vec<Call>,
    /// Calls that last, also those that are not listed.
    pub calls_in_all: usize,
}

/// A call in which some ranks are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// These ranks.
    pub ranks: String,
    /// The numbers of their threads that are there, as `0-1`, where ranks have several; else empty.
    pub threads: String,
    /// Name of the call.
    pub call: String,
    /// Where it was made.
    pub place: String,
    /// The rank that is waited for, if it is one.
    pub waits_for: Option<u32>,
    /// How long the first of these ranks has been there, s, at least.
    pub for_s: f64,
}
