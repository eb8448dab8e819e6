//! The clock by which members begin together.

use super::world::Members;

/// Round trips of which the shortest counts.
const TRIPS: usize = 20;

/// This host's clock, ns.
pub fn now() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// What this rank's clock shows more than rank 0's, ns. `is_far` says of each member whether
/// its clock is another than rank 0's. Collective.
pub fn offset(members: &Members, is_far: &[bool]) -> i64 {
    let mut own = 0;
    for (member, _) in is_far.iter().enumerate().filter(|(_, far)| **far) {
        let member = member as i32;
        if members.rank == 0 {
            for _ in 0..TRIPS {
                members.receive(member);
                members.send(member, now());
            }
        } else if members.rank == member {
            let trip = |_| {
                let before = now();
                members.send(0, before);
                let theirs = members.receive(0);
                let after = now();
                (after - before, before + (after - before) / 2 - theirs)
            };
            own = (0..TRIPS).map(trip).min().map_or(0, |(_, offset)| offset);
        }
    }
    own
}
