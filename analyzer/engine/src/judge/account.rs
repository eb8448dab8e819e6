//! Parts of the time in calls: lost according to patterns, expected cost, and unexplained.
//!
//! Patterns name what they can measure between ranks. The rest of a location's time in an
//! operation, beyond the expected cost of its calls, has no name: data still under way, the
//! network. As far as others had the processor then, or the file system took it, it has that name. All of it
//! becomes findings at its place, so that no time is missing.

use laggard_baselines::Baseline;
use laggard_patterns::PatternId;
use laggard_report::Settings;
use laggard_trace::calls::{self, GenericType, Shape};
use laggard_trace::flags;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::judge::detect::{Entry, Kinds};
use crate::stream::rows::Row;
use crate::stream::traffic::Beyond;
use crate::waits::sums::LocalFindings;

/// Calls of one operation and call path in a location. ns.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    operation: u16,
    path: u32,
    count: u64,
    total: u64,
    /// Cost of one call that waits for nobody.
    cost: u64,
    /// The same on a slow network: an upper bound for a cost.
    most: u64,
    /// Time to move the bytes of all calls on a slow network. If the calls only begin requests, it
    /// counts for the calls that complete them.
    moving: u64,
}

/// Time of a location in calls, as far as it is settled. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Charged by patterns, completion of collectives included.
    pub explained: u64,
    /// Neither charged nor expected.
    pub unexplained: u64,
}

/// The accounts of a location with these profile `entries`. Start-up, shut-down, regions of the
/// program, POSIX I/O and waits among threads have none, and completion of file operations is in none.
pub fn open(
    entries: &[(u32, Entry)],
    kinds: &Kinds,
    baseline: &dyn Baseline,
    settings: &Settings,
) -> Vec<Account> {
    let accounts = entries.iter().filter_map(|(path, entry)| {
        let call = calls::call(entry.operation)?;
        let is_end = call.shape.is_apart();
        // A loop of the program may do more than wait.
        // POSIX I/O takes what it takes: it waits for devices. So do threads, in turns on cores.
        let is_none = is_end || call.is_user() || call.is_posix() || call.is_threads();
        let (count, total) = (
            entry.count.saturating_sub(entry.on_files.0),
            entry.total.saturating_sub(entry.on_files.1),
        );
        if is_none || count == 0 {
            return None;
        }
        let (cost, most) = kinds.cost(entry, baseline, settings);
        Some(Account {
            operation: entry.operation,
            path: *path,
            count,
            total,
            cost: cost as u64,
            most: most as u64,
            moving: entry.moving() as u64,
        })
    });
    accounts.collect()
}

/// What calls were beyond their waiting, in the order in which it is taken from what they have left.
const BEYOND: [PatternId; 2] = [PatternId::WithoutProcessor, PatternId::Storage];

/// Losses of a location in one operation and call path. ns.
#[derive(Default)]
struct Lost {
    /// One of its signatures.
    signature: u32,
    /// The calls only begin requests.
    posts: bool,
    explained: u64,
    /// Losses of single calls without a cause.
    unexplained: u64,
    /// Time by [`BEYOND`], and how many calls have some.
    beyond: [(u64, u64); BEYOND.len()],
    /// Calls with a loss, and the least time of one beyond its loss.
    instances: u64,
    rest: Option<u64>,
}

/// Settles the accounts of a thread and adds the unexplained time to its `findings`. `rows` and
/// `keys` are those of its signatures, `paths` the keys of its call paths. `between` is time between
/// looks, ns, which counts as part of them, and less in what does nothing there. `beyond` is by signature.
///
/// `unexplained = total - findings - cost`; of that, what calls were `beyond` their waits is no longer unexplained.
/// The cost of a call is the baseline table's value, else that of the fastest of its kind in the run,
/// times the ratio from which on a call is slow. A call with a loss costs the least time of such a call
/// beyond its loss: its data had still to come.
/// Both are at most the cost on a slow network. Calls that complete requests also cost the time to
/// move the requests' bytes.
pub fn settle(
    accounts: &[Account],
    findings: &mut LocalFindings,
    (rows, keys): (&[Row], &[PathKey]),
    paths: &[PathKey],
    (between, beyond): (&FxHashMap<(u16, PathKey), i64>, &[Beyond]),
) -> Settled {
    let mut settled = Settled::default();
    let mut lost: FxHashMap<(u16, PathKey), Lost> = FxHashMap::default();
    for (signature, (row, key)) in (0..rows.len() as u32).zip(rows.iter().zip(keys)).rev() {
        let lost = lost.entry((row.operation, *key)).or_default();
        lost.signature = signature;
        lost.posts |= row.has(flags::POSTS);
        let own = beyond.get(signature as usize).copied().unwrap_or_default();
        for (sum, own) in lost.beyond.iter_mut().zip([own.preempted, own.stored]) {
            sum.0 = sum.0.saturating_add(own.0.max(0) as u64);
            sum.1 = sum.1.saturating_add(own.1);
        }
    }
    let name = |account: &Account| {
        let key = paths.get(account.path as usize).copied();
        (account.operation, key.unwrap_or_default())
    };
    for (signature, pattern, sums) in findings.iter() {
        let at = signature as usize;
        let (Some(row), Some(key)) = (rows.get(at), keys.get(at)) else {
            continue;
        };
        let Some(pattern) = PatternId::from_number(pattern) else {
            continue;
        };
        if row.shape == Shape::Init {
            continue;
        }
        let lost = lost.entry((row.operation, *key)).or_default();
        if pattern == PatternId::Unexplained {
            // Waits among threads have no account.
            if calls::call(row.operation).is_some_and(|call| call.is_threads()) {
                settled.unexplained = settled.unexplained.saturating_add(sums.severity);
            }
            lost.unexplained = lost.unexplained.saturating_add(sums.severity);
            continue;
        }
        settled.explained = settled.explained.saturating_add(sums.severity);
        lost.explained = lost.explained.saturating_add(sums.severity);
        if pattern.is_waiting() {
            lost.instances = lost.instances.max(sums.instances);
            lost.rest = lost.rest.into_iter().chain(sums.rest).min();
        }
    }
    let posted = accounts
        .iter()
        .filter(|account| lost.get(&name(account)).is_some_and(|l| l.posts));
    let moving = posted.map(|account| account.moving);
    let mut moving = moving.fold(0, u64::saturating_add);
    for account in accounts {
        let Some(lost) = lost.get(&name(account)) else {
            continue;
        };
        let late = lost.instances.min(account.count);
        let rest = lost
            .rest
            .unwrap_or(0)
            .clamp(account.cost, account.most.max(account.cost));
        let cost = (account.count - late)
            .saturating_mul(account.cost)
            .saturating_add(late.saturating_mul(rest));
        let between = between.get(&name(account)).copied().unwrap_or(0);
        let total = account.total.saturating_add_signed(between);
        let beyond = total.saturating_sub(lost.explained);
        let mut unexplained = beyond.saturating_sub(cost);
        if calls::call(account.operation).is_some_and(|c| c.generic == GenericType::Completion) {
            let moved = unexplained.min(moving);
            moving -= moved;
            unexplained -= moved;
        }
        let unexplained = unexplained.max(lost.unexplained.min(beyond));
        let mut more = unexplained.saturating_sub(lost.unexplained);
        for (pattern, (time, calls)) in BEYOND.into_iter().zip(lost.beyond) {
            let time = time.min(more);
            findings.add_rest(pattern, lost.signature, (time, calls.min(account.count)));
            settled.explained = settled.explained.saturating_add(time);
            more -= time;
        }
        findings.add_rest(
            PatternId::Unexplained,
            lost.signature,
            (more, account.count),
        );
        let unexplained = more.saturating_add(lost.unexplained.min(unexplained));
        settled.unexplained = settled.unexplained.saturating_add(unexplained);
    }
    settled
}
