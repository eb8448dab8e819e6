//! Calls that progress only while another rank is inside the library.
//!
//! Many libraries move data only while the program is in one of their calls. A message with both
//! ends posted, a non-blocking collective that all have started, or an access to a window then
//! waits until the partner calls the library again.

use crate::Interval;
use crate::pattern::{Part, Pattern, Unit};

pub(crate) static WAIT_FOR_PROGRESS: Pattern = Pattern {
    id: "wait_for_progress",
    parent: "lost",
    name: "Wait for progress",
    summary: "A call waited until its partner was inside the MPI library again.",
    description: "The partner had started its part (MPI_Isend, MPI_Irecv, a non-blocking \
        collective, MPI_Win_post), or need not take part at all (passive target). But some \
        libraries and networks move the data only while that rank is inside MPI, and it computed \
        instead. When it entered a call, the waiting call went on. How closely it followed says \
        how sure that is.",
    condition: "the partner was outside of MPI while the call went on, and the call ended soon \
        after the partner had entered one: the time between is no more than the partner's longest \
        absence. Messages: only where the partner's call returned before its part was done",
    severity: "time that the partner was outside of MPI between max(enter, start of the partner's \
        part) and the last call that it entered before the leave; what other patterns charge is \
        not counted again. Passive target: enter of the target's next call - enter, without lock \
        contention",
    unit: Unit::Seconds,
    part: Part::Within,
};

/// Shortest absence of a partner that counts, ns: shorter ones end unnoticed.
pub const SHORTEST_NS: i64 = 10_000;

/// Shortest rest of a call to look into, ns.
pub const REST_NS: i64 = 20_000;

/// Time that a call waited for a partner's progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// ns.
    pub severity: i64,
    /// The doubtful part of it, ns: the call went on for a while after the partner was back.
    pub doubt: i64,
}

/// Wait for progress. `own` needed a partner from `from` on. The partner was outside of the library
/// in these `absences` (from, until; ascending), each ended by a call that it entered.
///
/// `None` if there was no absence. `None`, too, if the call went on after the partner's return for
/// longer than its longest absence: then there was another reason. The time after the return makes
/// the share `after / (longest absence + after)` of the severity doubtful.
pub fn wait_for_progress(own: Interval, from: i64, absences: &[(i64, i64)]) -> Option<Stall> {
    let from = from.max(own.enter);
    let within = |&(begin, end): &(i64, i64)| (begin.max(from), end.min(own.leave));
    let mut counted = absences
        .iter()
        .map(within)
        .filter(|(begin, end)| end > begin);
    let lengths = counted.clone().map(|(begin, end)| end - begin);
    let longest = lengths.clone().max()?;
    let severity = lengths.fold(0, i64::saturating_add);
    let after = own.leave - counted.next_back()?.1;
    (after <= longest).then(|| Stall {
        severity,
        doubt: in_doubt(severity, longest, after),
    })
}

/// Passive access: `own` waited until the target `entered` a call. Lock contention, until
/// `contended`, does not count.
pub fn passive(own: Interval, contended: Option<i64>, entered: i64) -> Stall {
    let from = contended.map_or(own.enter, |until| until.max(own.enter));
    let severity = own.before(entered).min(entered.saturating_sub(from)).max(0);
    let after = own.leave.saturating_sub(entered.max(own.enter)).max(0);
    Stall {
        severity,
        doubt: in_doubt(severity, severity, after.min(severity)),
    }
}

/// The doubtful part of the severity, ns: `severity · after / (absence + after)`.
fn in_doubt(severity: i64, absence: i64, after: i64) -> i64 {
    let whole = i128::from(absence) + i128::from(after);
    (i128::from(severity) * i128::from(after) / whole.max(1)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_call_waits_until_its_partner_is_back() {
        let own = Interval::new(100, 180);
        let stall = |from, absences: &[(i64, i64)]| {
            wait_for_progress(own, from, absences).map(|stall| (stall.severity, stall.doubt))
        };
        assert_eq!(stall(100, &[(90, 180)]), Some((80, 0)));
        assert_eq!(stall(120, &[(90, 178)]), Some((58, 1)));
        // In several steps.
        assert_eq!(
            stall(0, &[(100, 130), (132, 160), (162, 180)]),
            Some((76, 0))
        );
        // The last step may be short.
        assert_eq!(stall(100, &[(100, 160), (162, 163)]), Some((61, 13)));
        // It came back, but the call took long all the same.
        assert_eq!(stall(100, &[(100, 120)]), None);
        // It was there all the time.
        assert_eq!(stall(100, &[]), None);
        assert_eq!(stall(170, &[(100, 160)]), None);
    }

    #[test]
    fn progress_is_waited_for_after_the_lock() {
        let own = Interval::new(100, 180);
        let severity = |contended, entered| passive(own, contended, entered).severity;
        assert_eq!(severity(None, 150), 50);
        assert_eq!(severity(Some(120), 150), 30);
        assert_eq!(severity(Some(160), 150), 0);
        assert_eq!(severity(None, 90), 0);
        assert_eq!(passive(own, None, 180).doubt, 0);
        assert_eq!(passive(own, None, 150).doubt, 18);
    }

    proptest! {
        #[test]
        fn severities_fit_the_operation(
            enter in -1000i64..1000,
            length in 0i64..1000,
            from in -2000i64..2000,
            steps in proptest::collection::vec(1i64..200, 0..12),
            contended: i64,
            entered: i64,
        ) {
            let own = Interval::new(enter, enter + length);
            let mut at = -1500;
            let absences: Vec<_> = steps.chunks(2).map(|two| {
                let begin = at + two[0];
                at = begin + two.last().unwrap();
                (begin, at)
            }).collect();
            let passive = passive(own, Some(contended), entered);
            for stall in wait_for_progress(own, from, &absences).into_iter().chain([passive]) {
                prop_assert!((0..=own.duration()).contains(&stall.severity));
                prop_assert!((0..=stall.severity).contains(&stall.doubt));
            }
        }
    }
}
