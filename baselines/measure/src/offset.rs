//! Offsets between the clocks of members.

use super::clock;
use super::world::Members;

/// Round trips; the shortest counts.
const TRIPS: usize = 20;

/// This rank's clock minus rank 0's, ns. `is_far` says for each member whether its clock differs
/// from rank 0's. Collective.
pub fn offset(members: &Members, is_far: &[bool]) -> i64 {
    let mut own = 0;
    for (member, _) in is_far.iter().enumerate().filter(|(_, far)| **far) {
        let member = member as i32;
        if members.rank == 0 {
            for _ in 0..TRIPS {
                members.receive(member);
                members.send(member, clock::now());
            }
        } else if members.rank == member {
            let trip = |_| {
                let before = clock::now();
                members.send(0, before);
                let theirs = members.receive(0);
                let after = clock::now();
                (after - before, before + (after - before) / 2 - theirs)
            };
            own = (0..TRIPS).map(trip).min().map_or(0, |(_, offset)| offset);
        }
    }
    own
}
