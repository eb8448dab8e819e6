//! Faults and gaps of an archive, and their treatment.

use std::collections::BTreeMap;

/// Severity of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Good to know.
    Info,
    /// Numbers may be off.
    Warning,
    /// Part of the archive could not be used.
    Error,
}

macro_rules! kinds {
    ($($kind:ident $id:literal $level:ident $text:literal;)*) => {
        /// Kinds of notes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = $text] $kind,)*
        }

        impl Kind {
            /// Name in reports.
            pub fn id(self) -> &'static str {
                match self { $(Kind::$kind => $id,)* }
            }

            /// Severity.
            pub fn level(self) -> Level {
                match self { $(Kind::$kind => Level::$level,)* }
            }

            /// Meaning.
            pub fn text(self) -> &'static str {
                match self { $(Kind::$kind => $text,)* }
            }
        }
    };
}

kinds! {
    RepeatedDefinition "repeated_definitions" Info
        "numbers that the archive defines twice: the first definition counts";
    RepeatedLocation "repeated_locations" Warning
        "locations with the number of another one: the first counts";
    OtherLocation "other_locations" Info
        "locations that are no threads (metrics, accelerators) are left out";
    OddGrid "undefined_places" Info
        "places in Cartesian topologies that are outside of these, or of no communicator: left out";
    NoRank "locations_without_rank" Warning
        "locations of processes that are no ranks are left out";
    Stray "undefined_locations" Warning
        "files with events of locations that are not defined are left out";
    GuessedRanks "guessed_ranks" Warning
        "the archive does not say which locations communicate: its processes are taken for the ranks, in the order of their numbers";
    GuessedClock "guessed_clock" Warning
        "the archive does not say what its times are: they are taken for nanoseconds";
    NoDefinitions "missing_definitions" Warning
        "definitions of locations cannot be read: their numbers and times are taken for those of the whole archive";
    Broken "unreadable_events" Error
        "events cannot be read to their end; what came later is unknown";
    Skipped "skipped_records" Info
        "records that are of no use for this analysis (threads, files, parameters, metrics that are no counters)";
    OtherMetrics "other_metrics" Info
        "metrics that do not count what a thread does, in sums that grow, or beyond the eighth: left out";
    Backward "times_backward" Warning
        "events with a time before that of the event before them: taken for simultaneous";
    Unbalanced "unmatched_regions" Warning
        "regions that were left without having been entered, or were not left";
    Undefined "undefined_references" Warning
        "events that name a region, communicator or window that is not defined, or a rank that it does not have";
    Unfinished "unfinished_requests" Warning
        "receives and collectives that were posted, and of whose completion the archive says nothing: who was waited for there is unknown";
    UnknownRequest "unknown_requests" Warning
        "completions of requests that nobody posted";
    LateRequest "late_requests" Warning
        "requests that completed so long after they were posted that they could not be kept until then";
    Uncertain "uncertain_channels" Warning
        "messages on channels of which receives are missing: which belong together is unknown, so they are not judged";
    Incomplete "collectives_without_communicator" Warning
        "collective calls of which the archive does not say on which communicator: they are not judged";
    SwitchedOff "measurement_off" Warning
        "the measurement was switched off at times: calls meanwhile are not in the archive, and messages after that may be matched wrongly";
    Deep "deep_call_paths" Info
        "call paths that were cut because there are too many different ones";
}

/// Notes by kind: number of occurrences, and the subject of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(BTreeMap<Kind, (u64, String)>);

impl Notes {
    /// Adds `count` occurrences; `first` gives the subject of the first one.
    pub fn add(&mut self, kind: Kind, count: u64, first: impl FnOnce() -> String) {
        if count > 0 {
            let note = self.0.entry(kind).or_insert_with(|| (0, first()));
            note.0 = note.0.saturating_add(count);
        }
    }

    /// Kind, number of occurrences, and subject of the first, or "".
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64, &str)> {
        let notes = self.0.iter();
        notes.map(|(kind, (count, first))| (*kind, *count, first.as_str()))
    }
}
