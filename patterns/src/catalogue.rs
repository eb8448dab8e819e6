//! The rows, one per pattern, and everything derived from them.

use laggard_trace::calls::Shape;

use crate::pattern::{Part, Pattern, Unit};
use crate::{group, one_sided, polled, progress, threads, two_sided, unexplained, window};

/// An inner node of the metric tree that is no pattern.
#[derive(Debug)]
pub struct MetricGroup {
    /// Id that patterns name as their parent.
    pub id: &'static str,
    /// The group above, "" at the top.
    pub parent: &'static str,
    /// Name for people.
    pub name: &'static str,
}

/// The inner nodes of the metric tree, parents before children.
pub static GROUPS: &[MetricGroup] = &[
    MetricGroup {
        id: "lost",
        parent: "",
        name: "Time lost",
    },
    MetricGroup {
        id: "two_sided",
        parent: "lost",
        name: "In messages",
    },
    MetricGroup {
        id: "one_sided",
        parent: "lost",
        name: "In one-sided communication",
    },
    MetricGroup {
        id: "group_sync",
        parent: "lost",
        name: "In synchronisation of groups",
    },
    MetricGroup {
        id: "group_comm",
        parent: "lost",
        name: "In collective communication",
    },
    MetricGroup {
        id: "threads",
        parent: "lost",
        name: "Among threads of a rank",
    },
    MetricGroup {
        id: "setup",
        parent: "lost",
        name: "In collective set-up and shut-down",
    },
    MetricGroup {
        id: "defects",
        parent: "",
        name: "Possible defects of the program",
    },
];

/// A metric of time lost: a group of patterns, or one of them.
#[derive(Clone, Copy, Debug)]
pub enum LostMetric {
    /// What the patterns below it charge.
    Group(&'static MetricGroup),
    /// A pattern, with those below it.
    Pattern(PatternId),
}

impl LostMetric {
    /// Id in reports.
    pub fn id(self) -> &'static str {
        match self {
            LostMetric::Group(group) => group.id,
            LostMetric::Pattern(pattern) => pattern.id(),
        }
    }

    /// Id of the metric that it is part of, "" of all time lost.
    pub fn parent(self) -> &'static str {
        match self {
            LostMetric::Group(group) => group.parent,
            LostMetric::Pattern(pattern) => pattern.row().parent,
        }
    }

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            LostMetric::Group(group) => group.name,
            LostMetric::Pattern(pattern) => pattern.name(),
        }
    }
}

/// The metrics of time lost of a run with these patterns, parents before children. Patterns that only count have none.
pub fn lost_metrics(found: impl IntoIterator<Item = PatternId>) -> Vec<LostMetric> {
    let mut ids: Vec<&str> = vec!["lost"];
    for pattern in found {
        let mut next = Some(pattern).filter(|one| one.row().unit == Unit::Seconds);
        while let Some(pattern) = next {
            ids.extend([pattern.id(), pattern.group()]);
            next = PatternId::from_id(pattern.row().parent);
        }
    }
    let of_parent = |id: &str| -> Vec<LostMetric> {
        let groups = GROUPS.iter().map(LostMetric::Group);
        let patterns = PatternId::ALL.iter().copied().map(LostMetric::Pattern);
        let below = groups
            .chain(patterns)
            .filter(|metric| metric.parent() == id);
        below.filter(|metric| ids.contains(&metric.id())).collect()
    };
    let mut all = Vec::new();
    let mut open: Vec<LostMetric> = of_parent("");
    while let Some(next) = open.pop() {
        all.push(next);
        open.extend(of_parent(next.id()).into_iter().rev());
    }
    all
}

macro_rules! patterns {
    ($($number:literal $name:ident = $row:expr;)*) => {
        /// A pattern of the catalogue. Its number never changes and is never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum PatternId { $($name = $number,)* }

        impl PatternId {
            /// All patterns in the order of the catalogue.
            pub const ALL: &'static [PatternId] = &[$(PatternId::$name,)*];

            /// The pattern with this number, the inverse of `as u8`.
            pub fn from_number(number: u8) -> Option<PatternId> {
                match number {
                    $($number => Some(PatternId::$name),)*
                    _ => None,
                }
            }

            /// The pattern's row.
            pub fn row(self) -> &'static Pattern {
                match self {
                    $(PatternId::$name => &$row,)*
                }
            }
        }
    };
}

patterns! {
    0 LateSender = two_sided::LATE_SENDER;
    1 LateSenderWrongOrderSameSource = two_sided::WRONG_ORDER_SAME_SOURCE;
    2 LateSenderWrongOrderOtherSource = two_sided::WRONG_ORDER_OTHER_SOURCE;
    3 LateReceiver = two_sided::LATE_RECEIVER;
    4 UnmatchedSend = two_sided::UNMATCHED_SEND;
    5 UnmatchedReceive = two_sided::UNMATCHED_RECEIVE;
    6 WaitAtBarrier = group::WAIT_AT_BARRIER;
    7 BarrierCompletion = group::BARRIER_COMPLETION;
    8 WaitAtNxn = group::WAIT_AT_NXN;
    9 NxnCompletion = group::NXN_COMPLETION;
    10 LateBroadcast = group::LATE_BROADCAST;
    11 EarlyReduce = group::EARLY_REDUCE;
    12 LateReduceContribution = group::LATE_REDUCE_CONTRIBUTION;
    13 EarlyScan = group::EARLY_SCAN;
    14 WaitAtFinalize = group::WAIT_AT_FINALIZE;
    15 InitCompletion = group::INIT_COMPLETION;
    16 WaitAtWindowCreate = group::WAIT_AT_WINDOW_CREATE;
    17 WaitAtWindowFree = group::WAIT_AT_WINDOW_FREE;
    18 WaitAtCommManagement = group::WAIT_AT_COMM_MANAGEMENT;
    19 WaitAtCollectiveIo = group::WAIT_AT_COLLECTIVE_IO;
    20 WaitAtShmemBarrier = group::WAIT_AT_SHMEM_BARRIER;
    21 LatePost = window::LATE_POST;
    22 EarlyWait = window::EARLY_WAIT;
    23 LateComplete = window::LATE_COMPLETE;
    24 WaitAtFence = window::WAIT_AT_FENCE;
    25 EarlyFence = window::EARLY_FENCE;
    26 WaitOnValue = one_sided::WAIT_ON_VALUE;
    27 WaitOnLock = one_sided::WAIT_ON_LOCK;
    28 LockContention = window::LOCK_CONTENTION;
    29 WaitForProgress = progress::WAIT_FOR_PROGRESS;
    30 Unexplained = unexplained::UNEXPLAINED;
    31 CompetingPut = one_sided::COMPETING_PUT;
    32 CompetingGet = one_sided::COMPETING_GET;
    33 LateSenderSync = two_sided::LATE_SENDER_SYNC;
    34 LateReceiverSync = two_sided::LATE_RECEIVER_SYNC;
    35 LatePostSync = window::LATE_POST_SYNC;
    36 EarlyWaitSync = window::EARLY_WAIT_SYNC;
    37 WaitAtFenceSync = window::WAIT_AT_FENCE_SYNC;
    38 LateSenderPolled = polled::LATE_SENDER_POLLED;
    39 LateReceiverPolled = polled::LATE_RECEIVER_POLLED;
    40 WaitAtBarrierPolled = polled::WAIT_AT_BARRIER_POLLED;
    41 WaitAtNxnPolled = polled::WAIT_AT_NXN_POLLED;
    42 LateBroadcastPolled = polled::LATE_BROADCAST_POLLED;
    43 EarlyReducePolled = polled::EARLY_REDUCE_POLLED;
    44 LateReduceContributionPolled = polled::LATE_REDUCE_CONTRIBUTION_POLLED;
    45 EarlyScanPolled = polled::EARLY_SCAN_POLLED;
    46 WaitAtCommManagementPolled = polled::WAIT_AT_COMM_MANAGEMENT_POLLED;
    47 WaitAtCollectiveIoPolled = polled::WAIT_AT_COLLECTIVE_IO_POLLED;
    48 EarlyWaitPolled = polled::EARLY_WAIT_POLLED;
    49 WaitOnValuePolled = polled::WAIT_ON_VALUE_POLLED;
    50 WaitOnLockPolled = polled::WAIT_ON_LOCK_POLLED;
    51 PartnerWithoutTrace = unexplained::PARTNER_WITHOUT_TRACE;
    52 LookedInVain = polled::LOOKED_IN_VAIN;
    53 LateSenderSyncPolled = polled::LATE_SENDER_SYNC_POLLED;
    54 LateReceiverSyncPolled = polled::LATE_RECEIVER_SYNC_POLLED;
    55 EarlyWaitSyncPolled = polled::EARLY_WAIT_SYNC_POLLED;
    56 WaitAtOmpBarrier = threads::WAIT_AT_OMP_BARRIER;
    57 WaitAtImplicitOmpBarrier = threads::WAIT_AT_IMPLICIT_OMP_BARRIER;
    58 IdleThreads = threads::IDLE_THREADS;
    59 WaitOnMutex = threads::WAIT_ON_MUTEX;
    60 WaitAtCritical = threads::WAIT_AT_CRITICAL;
    61 WaitAtThreadBarrier = threads::WAIT_AT_THREAD_BARRIER;
    62 WaitOnSignal = threads::WAIT_ON_SIGNAL;
    63 WaitForThread = threads::WAIT_FOR_THREAD;
    64 OmpManagement = threads::OMP_MANAGEMENT;
    65 WithoutProcessor = unexplained::WITHOUT_PROCESSOR;
    66 WaitForTasks = threads::WAIT_FOR_TASKS;
    67 WaitAtOrdered = threads::WAIT_AT_ORDERED;
    68 WaitForMember = group::WAIT_FOR_MEMBER;
    69 Storage = unexplained::STORAGE;
}

impl PatternId {
    /// The id in reports.
    pub fn id(self) -> &'static str {
        self.row().id
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The class of its waiting, in which reports add up what it comes from and what comes of it.
    pub fn class(self) -> &'static str {
        use PatternId::*;
        match self {
            LateSender | UnmatchedReceive => "late_sender",
            LateReceiver | UnmatchedSend => "late_receiver",
            WaitAtBarrier | WaitAtFinalize | InitCompletion | WaitAtWindowCreate
            | WaitAtWindowFree | WaitAtCommManagement | WaitAtCollectiveIo => "barrier",
            WaitAtNxn => "nxn",
            LateBroadcast => "one_to_n",
            EarlyReduce | LateReduceContribution => "n_to_one",
            WaitForMember => "rooted",
            EarlyScan => "scan",
            LatePost | EarlyWait | LateComplete | WaitAtFence | EarlyFence | LockContention => {
                "one_sided"
            }
            WaitAtShmemBarrier | WaitOnValue | WaitOnLock | CompetingPut | CompetingGet => "shmem",
            WaitAtOmpBarrier
            | WaitAtImplicitOmpBarrier
            | IdleThreads
            | WaitOnMutex
            | WaitAtCritical
            | WaitAtOrdered
            | WaitAtThreadBarrier
            | WaitOnSignal
            | WaitForThread
            | WaitForTasks
            | OmpManagement => "threads",
            WaitForProgress => "progress",
            PartnerWithoutTrace | LookedInVain => "unknown",
            child => PatternId::from_id(child.row().parent).map_or("other", PatternId::class),
        }
    }

    /// Whether it concerns a collective of a group, not messages.
    pub fn is_about_group(self) -> bool {
        let group = self.group();
        !matches!(
            group,
            "two_sided" | "one_sided" | "threads" | "lost" | "defects"
        )
    }

    /// The [`MetricGroup`] that it belongs to, over other patterns.
    pub fn group(self) -> &'static str {
        let parent = self.row().parent;
        PatternId::from_id(parent).map_or(parent, PatternId::group)
    }

    /// The child of the pattern for waits by polling; the pattern itself if it has none.
    pub fn polled(self) -> PatternId {
        use PatternId::*;
        match self {
            LateSender => LateSenderPolled,
            LateSenderSync => LateSenderSyncPolled,
            LateReceiver => LateReceiverPolled,
            LateReceiverSync => LateReceiverSyncPolled,
            WaitAtBarrier => WaitAtBarrierPolled,
            WaitAtNxn => WaitAtNxnPolled,
            LateBroadcast => LateBroadcastPolled,
            EarlyReduce => EarlyReducePolled,
            LateReduceContribution => LateReduceContributionPolled,
            EarlyScan => EarlyScanPolled,
            WaitAtCommManagement => WaitAtCommManagementPolled,
            WaitAtCollectiveIo => WaitAtCollectiveIoPolled,
            EarlyWait => EarlyWaitPolled,
            EarlyWaitSync => EarlyWaitSyncPolled,
            WaitOnValue => WaitOnValuePolled,
            WaitOnLock => WaitOnLockPolled,
            other => other,
        }
    }

    /// The pattern without polling, of which it is a child; or itself.
    pub fn unpolled(self) -> PatternId {
        match self.is_polled() {
            true => PatternId::from_id(self.row().parent).unwrap_or(self),
            false => self,
        }
    }

    /// Whether it is one of the waits by polling: the time lies in several calls, and between them.
    pub fn is_polled(self) -> bool {
        (PatternId::LateSenderPolled..=PatternId::WaitOnLockPolled).contains(&self)
            || (PatternId::LateSenderSyncPolled..=PatternId::EarlyWaitSyncPolled).contains(&self)
    }

    /// What all calls at a place lost together: single ones tell nothing of it, or not all.
    pub const TOGETHER: [PatternId; 3] = [
        PatternId::WithoutProcessor,
        PatternId::Storage,
        PatternId::Unexplained,
    ];

    /// Whether its time is waiting for another party.
    pub fn is_waiting(self) -> bool {
        matches!(self.row().part, Part::Begin | Part::Within)
    }

    /// Whether its time is part of start-up.
    pub fn is_startup(self) -> bool {
        self == PatternId::InitCompletion
    }

    /// Finds a pattern by id or name, in any spelling.
    pub fn from_text(text: &str) -> Option<PatternId> {
        let plain = |text: &str| -> String {
            let letters = text.chars().filter(|c| c.is_alphanumeric());
            letters.flat_map(char::to_lowercase).collect()
        };
        let wanted = plain(text);
        let mut all = PatternId::ALL.iter().copied();
        all.find(|pattern| [pattern.id(), pattern.name()].map(plain).contains(&wanted))
    }

    /// The pattern with this id.
    pub fn from_id(id: &str) -> Option<PatternId> {
        PatternId::ALL
            .iter()
            .copied()
            .find(|pattern| pattern.id() == id)
    }
}

/// The patterns that an operation of this shape can have, the wait first.
pub fn of_shape(shape: Shape) -> &'static [PatternId] {
    use PatternId::*;
    match shape {
        Shape::Single => &[],
        Shape::Fence => &[WaitAtFence, EarlyFence, WaitAtFenceSync],
        Shape::Barrier => &[WaitAtBarrier, BarrierCompletion],
        Shape::PeBarrier => &[WaitAtShmemBarrier, BarrierCompletion],
        Shape::AllToAll | Shape::Neighbourhood => &[WaitAtNxn, NxnCompletion],
        Shape::OneToAll => &[LateBroadcast, WaitForMember],
        Shape::AllToOne => &[EarlyReduce, LateReduceContribution, WaitForMember],
        Shape::Prefix => &[EarlyScan],
        Shape::Management => &[WaitAtCommManagement],
        Shape::WindowCreate => &[WaitAtWindowCreate],
        Shape::WindowFree => &[WaitAtWindowFree],
        Shape::CollectiveIo => &[WaitAtCollectiveIo],
        Shape::Init => &[InitCompletion],
        Shape::Finalize => &[WaitAtFinalize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::explain;
    use crate::rules::RuleBase;
    use crate::wrapped::WIDTH;
    use std::collections::HashSet;

    #[test]
    fn rows_are_complete_and_unique() {
        let mut ids = HashSet::new();
        for (position, &pattern) in PatternId::ALL.iter().enumerate() {
            let row = pattern.row();
            assert!(ids.insert(row.id), "{} twice", row.id);
            assert_eq!(pattern as usize, position);
            assert_eq!(PatternId::from_number(pattern as u8), Some(pattern));
            assert_eq!(PatternId::from_id(row.id), Some(pattern));
            let texts = [row.name, row.summary, row.description, row.condition];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", row.id);
            assert!(
                row.summary.len() <= 100 && !row.summary.contains('\n'),
                "{}",
                row.id
            );
        }
        assert_eq!(PatternId::from_number(PatternId::ALL.len() as u8), None);
        assert_eq!(PatternId::from_id("late sender"), None);
    }

    #[test]
    fn patterns_are_found_by_what_people_type() {
        for &pattern in PatternId::ALL {
            let dashes = pattern.id().replace('_', "-");
            for text in [pattern.id(), pattern.name(), &dashes] {
                assert_eq!(PatternId::from_text(text), Some(pattern), "{text}");
                assert_eq!(PatternId::from_text(&text.to_uppercase()), Some(pattern));
            }
        }
        assert_eq!(PatternId::from_text("late"), None);
    }

    #[test]
    fn metric_tree_is_closed() {
        let above = |id: &str| {
            let pattern = PatternId::from_id(id).map(|pattern| pattern.row().parent);
            pattern.or_else(|| GROUPS.iter().find(|g| g.id == id).map(|g| g.parent))
        };
        for pattern in PatternId::ALL {
            let mut at = pattern.id();
            let mut steps = 0;
            while !at.is_empty() {
                at = above(at).unwrap_or_else(|| panic!("{at} is nowhere in the tree"));
                steps += 1;
                assert!(steps < 10, "{} is its own ancestor", pattern.id());
            }
        }
    }

    #[test]
    fn pages_fit_and_say_everything() {
        for &pattern in PatternId::ALL {
            let page = explain(pattern, RuleBase::built_in());
            let row = pattern.row();
            assert!(
                page.lines().all(|line| line.chars().count() <= WIDTH),
                "{page}"
            );
            assert!(page.contains(row.id) && page.contains(row.name));
            let rules = RuleBase::built_in().iter();
            let general = rules.filter(|r| r.is_general() && r.patterns.contains(&pattern));
            assert_eq!(page.matches("  - ").count(), general.count());
        }
    }

    #[test]
    fn all_waiting_has_a_class() {
        let waiting = PatternId::ALL.iter().filter(|pattern| pattern.is_waiting());
        let other = waiting.filter(|pattern| pattern.class() == "other");
        assert_eq!(other.count(), 0);
        let child = PatternId::LateSenderWrongOrderSameSource;
        assert_eq!(child.class(), "late_sender");
    }

    #[test]
    fn groups_are_told_from_messages() {
        assert!(!PatternId::LateSenderWrongOrderSameSource.is_about_group());
        assert!(!PatternId::LateReceiver.is_about_group());
        assert!(!PatternId::LateReceiverSync.is_about_group());
        assert!(!PatternId::LatePostSync.is_about_group());
        assert!(PatternId::WaitAtFenceSync.is_about_group());
        assert!(!PatternId::WaitOnValue.is_about_group());
        assert!(PatternId::LateBroadcast.is_about_group());
        assert!(PatternId::WaitAtFinalize.is_about_group());
    }

    #[test]
    fn waits_by_polling_are_children() {
        let mut children = 0;
        for &pattern in PatternId::ALL {
            let polled = pattern.polled();
            assert_eq!(polled.polled(), polled);
            if polled != pattern {
                children += 1;
                assert!(polled.is_polled() && polled.is_waiting());
                assert_eq!(polled.unpolled(), pattern);
                assert_eq!(polled.id(), format!("{}_polled", pattern.id()));
                assert_eq!(polled.is_about_group(), pattern.is_about_group());
            }
        }
        let polled = PatternId::ALL.iter().filter(|pattern| pattern.is_polled());
        assert_eq!(polled.count(), children);
    }

    #[test]
    fn shapes_name_their_wait_first() {
        assert_eq!(of_shape(Shape::Single), &[]);
        assert_eq!(of_shape(Shape::Barrier)[0], PatternId::WaitAtBarrier);
        assert_eq!(
            of_shape(Shape::Neighbourhood),
            &[PatternId::WaitAtNxn, PatternId::NxnCompletion]
        );
    }
}
