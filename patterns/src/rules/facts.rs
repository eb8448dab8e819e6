//! Facts about a finding that rules may use: names, units, and meanings.

/// Kind of a fact's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Seconds.
    Time,
    /// Bytes.
    Bytes,
    /// A count.
    Count,
    /// A fraction, 0..=1.
    Share,
    /// Text.
    Text,
}

impl Kind {
    /// The unit in the list of facts.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Time => "s",
            Kind::Bytes => "bytes",
            Kind::Count => "number",
            Kind::Share => "0 to 1",
            Kind::Text => "text",
        }
    }
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number, in the unit of its kind.
    Number(f64),
    /// Text.
    Text(String),
}

/// One row of the list of facts.
#[derive(Debug)]
pub struct FactRow {
    /// Name in rules.
    pub name: &'static str,
    /// Unit.
    pub kind: Kind,
    /// Meaning.
    pub meaning: &'static str,
}

macro_rules! facts {
    ($($name:ident = $text:literal $kind:ident $meaning:literal;)*) => {
        /// A fact about a finding, known or unknown.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Fact { $($name,)* }

        impl Fact {
            /// All, in the order of the list.
            pub const ALL: &'static [Fact] = &[$(Fact::$name,)*];

            /// The row of the list.
            pub fn row(self) -> &'static FactRow {
                match self {
                    $(Fact::$name => &FactRow {
                        name: $text,
                        kind: Kind::$kind,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

facts! {
    Pattern = "pattern" Text "id of the pattern";
    Operation = "operation" Text "the call that lost the time";
    OperationType = "operation_type" Text "its generic type, as in the report";
    Model = "model" Text "mpi or shmem";
    Place = "place" Text "where it is called";
    Who = "who" Text "the ranks that lost time";
    Waiting = "waiting" Count "how many ranks lost time";
    Severity = "severity" Time "time lost by all ranks";
    RankLoss = "rank_loss" Time "most time that a rank lost";
    LeastLoss = "least_loss" Time "least time that a rank lost, if all members lost time; else 0";
    Left = "left" Time
        "part of rank_loss that stays gained when all that the ranks need next comes as early as \
         it did";
    Calls = "calls" Count "calls at this place, of all ranks";
    Instances = "instances" Count "calls that lost time";
    Mean = "mean" Time "mean duration of the calls";
    Time = "time" Time "duration of all calls together";
    Bytes = "bytes" Bytes "bytes sent and received by a call, on average";
    Members = "members" Count "ranks that take part in a call: 2 in a message";
    Ranks = "ranks" Count "ranks of the run";
    Hosts = "hosts" Count "hosts of the run";
    Crowded = "crowded" Count
        "ranks on the most crowded host, where ranks share cores; 0 if each has its own";
    CrowdedThreads = "crowded_threads" Count
        "threads on the most crowded host, where each rank has a core and its threads have not; else 0";
    CrowdedCores = "crowded_cores" Count "cores of the most crowded host; 0 if each thread has its own";
    Polls = "polls" Count "1 if the calls only look whether something has come, else 0";
    Wall = "wall" Time "duration of the run between start-up and shut-down";
    EagerLimit = "eager_limit" Bytes
        "messages above it wait for their receive: from the run's environment, else the default; \
         known of Open MPI (shared memory, TCP) and of UCX under it or MPICH";
    EagerSource = "eager_source" Text
        "where eager_limit is from: a setting, or the default of a library";
    RootShare = "root_share" Share
        "largest part of the time lost that one rank started, at this place or through others; 0 if \
         root causes were not searched";
    Threads = "threads" Count
        "of a root cause: 1 if further threads of ranks cause it, or other threads of their ranks wait for most \
         of it; else 0";
    InCall = "in_call" Count
        "of a root cause that is no work: 1 if it is in a call, 0 if it is between two";
    PageFaults = "page_faults" Count
        "of a root cause in the kernel between two calls: how many page faults more there were each time, if \
         these take half of the time; else 0";
    Causes = "causes" Count "how many different ranks were late";
    CauseRank = "cause_rank" Count "the rank that was late for most of the time lost";
    CauseShare = "cause_share" Share "part of the time lost that cause_rank causes";
    CauseComputed = "cause_computed" Time
        "time that cause_rank computed, of the time lost that it causes";
    WhoElse = "who_else" Text "the ranks that lost time, without cause_rank";
    Others = "others" Count "how many ranks who_else names";
    LeastElse = "least_else" Time
        "least time that one of who_else lost, if all other members lost time; else 0";
    CauseOperation = "cause_operation" Text "the call that cause_rank made too late";
    CausePlace = "cause_place" Text "where cause_operation is called";
    Because = "because" Text "what cause_rank did before, in words";
    Late = "late" Text "the same, to choose by: computed, held_up or unknown";
    Computed = "computed" Time "part of the time lost in which late ranks computed";
    Waited = "waited" Time "part of the time lost in which late ranks were in communication";
    Io = "io" Time "part of the time lost in which late ranks were in file operations";
    NextOperation = "next_operation" Text "the call that mostly follows on the same rank";
    NextType = "next_type" Text "its generic type, as in the report";
    NextPlace = "next_place" Text "where next_operation is called";
    NextShape = "next_shape" Text
        "who waits for whom in next_operation: single, barrier, one_to_all, all_to_one, \
         all_to_all, prefix or other";
    NextShare = "next_share" Share "part of the calls that next_operation follows";
    NextSameGroup = "next_same_group" Share
        "part of the calls that next_operation follows with the same communicator";
    Repeats = "repeats" Share
        "part of the calls that the same call follows, at the same place, with the same peer or \
         communicator";
    ComputedAfter = "computed_after" Time "computation between a call and the next one, on average";
    Overlap = "overlap" Time
        "part of the calls' duration that computation directly after them could hide, of all ranks";
    Ahead = "ahead" Time
        "the same with all computation up to where the rank gives something to others";
    Alike = "alike" Time
        "the same with computation that follows further receives up to there, after each at most \
         as much as after the call itself";
}

impl Fact {
    /// The fact with this name.
    pub fn from_name(name: &str) -> Option<Fact> {
        let mut all = Fact::ALL.iter().copied();
        all.find(|fact| fact.row().name == name)
    }

    /// The fact name most similar to an unknown name.
    pub fn like(name: &str) -> &'static str {
        let closeness = |fact: &&Fact| {
            let own = fact.row().name;
            let pairs = |text: &str| {
                let text = text.as_bytes();
                text.windows(2).map(<[u8]>::to_vec).collect::<Vec<_>>()
            };
            let (mine, wanted) = (pairs(own), pairs(name));
            let common = mine.iter().filter(|pair| wanted.contains(pair)).count();
            // In percent of both, as Dice's coefficient.
            200 * common / (mine.len() + wanted.len()).max(1)
        };
        let best = Fact::ALL.iter().rev().max_by_key(closeness);
        best.map_or("", |fact| fact.row().name)
    }
}

/// The known facts of one finding.
#[derive(Clone, Debug)]
pub struct Facts(Vec<Option<Value>>);

impl Default for Facts {
    fn default() -> Self {
        Facts(vec![None; Fact::ALL.len()])
    }
}

impl Facts {
    /// Sets a number; NaN and infinity count as unknown.
    pub fn number(&mut self, fact: Fact, value: f64) {
        debug_assert!(fact.row().kind != Kind::Text, "{fact:?}");
        self.0[fact as usize] = value.is_finite().then_some(Value::Number(value));
    }

    /// Sets a text.
    pub fn text(&mut self, fact: Fact, value: impl Into<String>) {
        debug_assert!(fact.row().kind == Kind::Text, "{fact:?}");
        self.0[fact as usize] = Some(Value::Text(value.into()));
    }

    /// The value, if known.
    pub fn get(&self, fact: Fact) -> Option<&Value> {
        self.0[fact as usize].as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for &fact in Fact::ALL {
            assert_eq!(Fact::from_name(fact.row().name), Some(fact));
            assert!(!fact.row().meaning.is_empty());
        }
        assert_eq!(Fact::from_name("severty"), None);
        assert_eq!(Fact::like("severty"), "severity");
        assert_eq!(Fact::like("cause_ranks"), "cause_rank");
    }

    #[test]
    fn no_number_is_not_known() {
        let mut facts = Facts::default();
        facts.number(Fact::Mean, f64::NAN);
        assert_eq!(facts.get(Fact::Mean), None);
        facts.number(Fact::Mean, 2.0);
        assert_eq!(facts.get(Fact::Mean), Some(&Value::Number(2.0)));
    }
}
