//! Messages between agents in the search for root causes.

use serde::{Deserialize, Serialize};

use crate::wire::packing::{Mask, Pack, Packer, Unpacker, entries};
use crate::wire::parcels::{Parcel, parcels};

entries! {
    /// A wait for one late party, or for nobody known.
    #[derive(Default)]
    Link {
        /// When the party was late, ns.
        time: i64,
        /// Enter of the waiting call, ns. If it ended an episode of looks: when the party was late.
        enter: i64,
        /// Its leave, ns.
        leave: i64,
        /// If it ended an episode of looks: how long before `time` the looking began, ns; otherwise 0.
        looked: i64,
        /// Time lost to this party, ns.
        share: i64,
        /// If looks waited for several: how much longer they did since the party before, ns.
        beyond: i64,
        /// When the first member left the collective, ns; `i64::MAX` if it is none.
        left: i64,
        /// Number of the late call in its location.
        event: u64,
        /// World rank of the late party; `NONE` if it is unknown.
        late_rank: u32,
        /// Signature of the waiting call.
        signature: u32,
        /// Waiting world rank.
        rank: u32,
        /// Number of the late thread in the trace.
        late_thread: u32,
        /// Position of the waiting thread in its rank.
        thread: u32,
        /// Which pattern.
        pattern: u16,
        /// 1 = looks that waited for several went on after this party came.
        goes_on: u16,
        /// 1 = looks at something else found nothing meanwhile; 2 = these are such looks, and another one ended the wait.
        beside: u16,
    }
    /// Who waits: bits of sets of 64. Several share one if there are more.
    #[derive(Default, Eq, Serialize, Deserialize)]
    Waiters {
        /// World ranks, see [`crate::roots::carry::rank_bit`].
        ranks: u64,
        /// Numbers of their threads, see [`crate::roots::carry::thread_bit`].
        threads: u64,
    }
    /// A wait, as the agent of the late party needs it; or those of all members of a collective
    /// at an agent. Its place in the list is its number.
    #[derive(Default)]
    Told {
        /// Number of the late call in its location.
        event: u64,
        /// Time lost to it, ns.
        share: i64,
        /// When the first one left the operation in which the two met, ns: the waiting call, or a
        /// member of the collective.
        left: i64,
        /// World rank of the late party.
        late_rank: u32,
        /// Waiting world rank, or one of them, and number of its thread in the trace.
        rank: u32,
        thread: u32,
        /// Who waits.
        who: Waiters,
        /// Call path of the waiting call.
        path: [u64; 2],
        /// The waiting call.
        operation: u16,
        /// Which pattern.
        pattern: u16,
        /// Number of the late thread in the trace.
        late_thread: u32,
        /// The group, if these are waits of members of a collective; otherwise 0.
        group: u64,
        /// 1 = they met in a collective.
        is_met: u32,
        /// See [`Link::looked`] and [`Link::beside`].
        looked: i64,
        beside: u16,
    }
    /// What a waiting location did since it last synchronised with the late party. Its activities
    /// and their times are in lists of their own.
    #[derive(Default)]
    Side {
        /// Number of the wait, see [`Told`].
        index: u32,
        /// Number of waits. Their times are added up.
        waits: u32,
        /// Number of activities.
        count: u32,
    }
    /// Costs that others put on a wait, on their way to its late party. Its parts follow in a list
    /// of their own.
    #[derive(Default)]
    Carried {
        /// Number of the wait, see [`Told`].
        index: u32,
        /// Number of parts.
        count: u32,
    }
    /// Costs of the waits of one pattern and place.
    #[derive(Default)]
    Part {
        /// In [`UNIT`](crate::roots::carry::UNIT)s of a ns.
        amount: i64,
        /// Who waits.
        who: Waiters,
        /// Number of the waits among those that the sender has told to the receiver.
        victim: u32,
    }
    /// Waits of one pattern and place: the next one that the sender tells to the receiver.
    #[derive(Default)]
    Named {
        /// Which pattern.
        pattern: u16,
        /// The waiting call.
        operation: u16,
        /// Its call path.
        path: [u64; 2],
    }
    /// Waits for a location, kept for the backward sweep. What the location did longer follows in
    /// a list of its own, and so do those who told the waits.
    #[derive(Default)]
    Blame {
        /// Position among what happened at the late location.
        order: u64,
        /// The waiting time, ns.
        share: i64,
        /// Positions from here on are after the last synchronisation of the two.
        since: u64,
        /// Time that the late location waited itself since then, without what the waiting ones
        /// waited alike, ns.
        waited: i64,
        /// Who waits.
        who: Waiters,
        /// Pattern, waiting call, and call path: the agent's number.
        victim: u32,
        /// Number of activities that the location did longer.
        count: u32,
        /// Number of kinds of waits that the waiting ones had, too.
        alike: u32,
        /// Number of those who told.
        sources: u32,
        /// Number of waits.
        waits: u32,
        /// The late location.
        lane: u32,
        /// Number of the activity that the wait is charged to if it lasted longer than all that
        /// the late location did longer.
        latency: u32,
    }
    /// Who told waits: an agent, and their number there.
    #[derive(Default)]
    Source {
        /// The number.
        index: u32,
        /// The agent.
        agent: u32,
    }
    /// How much longer a location did something.
    #[derive(Default)]
    More {
        /// The location's number of the activity.
        activity: u32,
        /// ns
        time: i64,
    }
    /// Waits of a late location, for one for whom the waiting ones waited, too.
    #[derive(Default)]
    Alike {
        /// The location's number of their activity.
        activity: u32,
        /// All of them since the two met, ns.
        all: i64,
        /// What the waiting ones waited alike, at most as much, ns.
        both: i64,
    }
    /// Where the critical path leaves waiting calls.
    #[derive(Default)]
    Jump {
        /// When the late party came, ns.
        time: i64,
        /// The location.
        lane: u32,
        /// World rank and number of the thread of the late party.
        rank: u32,
        thread: u32,
    }
    /// Where the critical path goes on, at another agent.
    #[derive(Default)]
    Hop {
        /// The slab in which it leaves the one before.
        slab: u32,
        /// World rank and number of the thread.
        rank: u32,
        thread: u32,
        /// Until when it is there, ns.
        until: i64,
    }
    /// A stretch of the critical path.
    #[derive(Default)]
    Stretch {
        /// The location.
        lane: u32,
        /// Its begin, ns.
        from: i64,
        /// Its end, ns.
        until: i64,
    }
    /// A wait of a location, kept for the backward sweep.
    #[derive(Default)]
    Wait {
        /// Position among what happened at the location.
        order: u64,
        /// The waiting time, ns.
        share: i64,
        /// What counts as waiting after the late one had come, ns.
        transfer: u32,
        /// Its number.
        index: u32,
        /// The location.
        lane: u32,
        /// The agent of the late party; `NONE` if nobody is known.
        agent: u32,
        /// The location's number of its activity, see [`Alike`]; `NONE` if it is none.
        alike: u32,
        /// Which pattern.
        pattern: u16,
    }
}

parcels! {
    /// Waits of a slab.
    Linked {
        /// One for each late party.
        links: Link,
    }
    /// Waits, to the agents of the late parties.
    Telling {
        /// The waits.
        told: Told,
    }
    /// Answers to [`Telling`].
    Leaving {
        /// By how much the late calls were left before the waiting ones, in order, ns. 0: not before,
        /// not known, or the two met in a collective.
        earlier: i64,
    }
    /// What waiting locations did, to the agents of the late parties.
    Spending {
        /// The waits.
        sides: Side,
        /// Which set of activities each of them has.
        sets: u32,
        /// How many activities each set has.
        lengths: u32,
        /// The activities of all sets: positions among all that were told to this agent.
        activities: u32,
        /// Those told for the first time, see
        /// [`Activity::key`](crate::roots::activities::Activity::key).
        keys: [u64; 2],
        /// For each of these: which of the [`Wholes`] it belongs to, counted from 1; 0: it is compared by itself.
        wholes: u32,
        /// Times by set, activity and wait, ns: those of one activity are alike.
        times: i64,
    }
    /// What the backward sweep needs of a slab.
    Kept {
        /// Waits for locations of this agent, by location and order.
        blames: Blame,
        /// What these did longer, in order.
        more: More,
        /// What the waiting ones waited alike, in order.
        alike: Alike,
        /// Who told the waits, in order.
        sources: Source,
        /// Waits of locations of this agent, by location and order.
        waits: Wait,
        /// Numbers of waits that each agent told, and this agent's own at its place.
        counts: u32,
        /// By agent: how many of these come with costs.
        expected: u32,
    }
    /// Where the critical path may leave locations of this agent, kept until it is followed.
    Jumping {
        /// By location and time.
        jumps: Jump,
    }
    /// The critical path, to the agent that goes on.
    Hopping {
        /// One, or none if the path is at its begin.
        hops: Hop,
    }
    /// The critical path on an agent's locations, kept until it is summed up.
    Passing {
        /// The latest first.
        stretches: Stretch,
    }
    /// Costs, to the agents of the late parties.
    Carrying {
        /// The waits.
        carried: Carried,
        /// Their parts, in order.
        parts: Part,
        /// New waits that the parts are about, in the order of their numbers.
        victims: Named,
    }
}

/// What is compared as a whole, ns: computation, or all time that is none of the following; and between
/// calls off the processor by itself, off it since others had it, and in the kernel.
pub type Wholes = [i64; 4];
