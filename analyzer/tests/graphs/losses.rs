//! What calls lose: whom a member of a collective needs, and how long it waits for each.

use super::program::{Kind, Party, USUAL, Wait};

pub fn needs_all(kind: Kind) -> bool {
    matches!(kind, Kind::Barrier | Kind::Exchange)
}

/// The members whom one needs, by place.
pub fn needed(kind: Kind, local: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).filter(move |&other| {
        other != local
            && match kind {
                Kind::Barrier | Kind::Exchange => true,
                Kind::Broadcast(root) => other == root,
                Kind::Reduce(root) | Kind::Held(root) => local == root,
                Kind::Scan => other < local,
            }
    })
}

/// Whether a member stays in a collective until another one has come.
pub fn stays_for(kind: Kind, local: usize, other: usize) -> bool {
    let is_held = matches!(kind, Kind::Held(_));
    is_held || needed(kind, local, other + 1).any(|needed| needed == other)
}

/// The class of waits for those of whom a member needs nothing.
pub const HELD: &str = "rooted";

/// What a member of a reduction loses that needs nothing of others: the root first, then those that came
/// after that. It must have taken longer than on a slow network, and what is usual is no wait.
fn held(root: usize, local: usize, all: &[Party], (enter, leave): (u64, u64)) -> Vec<Wait> {
    // Profiles of these traces have no bytes.
    let slow = (50_000.0 * (all.len() as f64).log2()) as u64;
    let mut from = enter;
    let mut waits = Vec::new();
    let mut stage = |late: &dyn Fn(usize) -> bool| {
        let places = (0..all.len()).filter(|&other| other != local && late(other));
        let mut late: Vec<Party> = places.map(|other| all[other]).collect();
        late.retain(|party| (from + 1..=leave).contains(&party.enter));
        late.sort_by_key(|party| (party.enter, std::cmp::Reverse(party.at.0)));
        let Some(last) = late.last().map(|party| party.enter) else {
            return;
        };
        if leave - from >= slow {
            waits.extend(divided(
                &late,
                from,
                last.min(leave - USUAL).max(from),
                HELD,
            ));
        }
        from = last;
    };
    stage(&|other| other == root);
    stage(&|_| true);
    waits
}

/// What a member waits for the others between two moments.
pub fn losses(
    kind: Kind,
    local: usize,
    all: &[Party],
    (enter, leave): (u64, u64),
    shares: bool,
) -> Vec<Wait> {
    match kind {
        Kind::Held(root) if local != root && shares => {
            return held(root, local, all, (enter, leave));
        }
        _ => {}
    }
    let mut late: Vec<Party> = needed(kind, local, all.len())
        .map(|other| all[other])
        .collect();
    late.sort_by_key(|party| (party.enter, std::cmp::Reverse(party.at.0)));
    let (Some(first), Some(last)) = (late.first().copied(), late.last().copied()) else {
        return Vec::new();
    };
    let until = last.enter.min(leave);
    let between = |from: u64, until: u64, class| {
        let mut late: Vec<Party> = late.iter().copied().filter(|p| p.enter > from).collect();
        if !shares && !late.is_empty() {
            late = vec![last];
        }
        divided(&late, from, until, class)
    };
    match kind {
        Kind::Reduce(_) | Kind::Held(_) => {
            // Until the first one comes, then until the last one does.
            let middle = first.enter.clamp(enter, leave);
            let mut waits = match shares {
                true => between(enter, middle, "n_to_one"),
                false => divided(&[first], enter, middle, "n_to_one"),
            };
            waits.extend(between(middle, until, "n_to_one"));
            waits
        }
        Kind::Barrier => between(enter, until, "barrier"),
        Kind::Exchange => between(enter, until, "nxn"),
        Kind::Broadcast(_) => between(enter, until, "one_to_n"),
        Kind::Scan => between(enter, until, "scan"),
    }
}

/// Divides time among those that are missing, who are given in the order of their coming.
fn divided(late: &[Party], from: u64, until: u64, class: &'static str) -> Vec<Wait> {
    let mut waits: Vec<Wait> = late
        .iter()
        .map(|party| Wait {
            share: 0,
            transfer: 0,
            late: party.at,
            class,
        })
        .collect();
    let mut since = from;
    for at in 0..late.len() {
        let next = late[at].enter.min(until);
        let time = next.saturating_sub(since) as i64;
        let missing = (late.len() - at) as i64;
        waits[at..]
            .iter_mut()
            .for_each(|wait| wait.share += time / missing);
        waits.last_mut().expect("it is missing").share += time % missing;
        since = since.max(next);
    }
    waits.retain(|wait| wait.share > 0);
    waits
}

pub fn late_sender((enter, leave): (u64, u64), sent: u64) -> i64 {
    sent.min(leave).saturating_sub(enter) as i64
}

pub fn late_receiver((enter, leave): (u64, u64), posted: u64) -> i64 {
    match leave > posted {
        true => posted.saturating_sub(enter) as i64,
        false => 0,
    }
}
