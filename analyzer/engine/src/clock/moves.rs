//! Times of a location in a run that was replayed with a change.

/// Maps recorded moments of a location to those of a changed run, ns. The map is monotonic, and
/// linear between the moments that it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Recorded and new times, both ascending.
    points: Vec<(i64, i64)>,
}

impl Moves {
    /// The recorded moment `recorded` is at `new`. What comes before an earlier call of this
    /// function is left out: enclosing calls begin before those in them.
    ///
    /// Time may go back, as where a look finds at once what others looked for in vain. Then all
    /// until `new` takes as long as before, and the rest no time.
    pub fn push(&mut self, recorded: i64, new: i64) {
        if self.points.last().is_some_and(|last| recorded < last.0) {
            return;
        }
        let mut passed = None;
        while let Some(last) = self
            .points
            .pop_if(|last| last.1 > new || last.0 == recorded)
        {
            passed = Some(last).filter(|last| last.1 > new);
        }
        if let Some(last) = self.points.last()
            && let Some(passed) = passed
        {
            let until = between((last.1, passed.1), (last.0, passed.0), new);
            if until > last.0 && until < recorded {
                self.points.push((until, new));
            }
        }
        // In between all moves as one.
        if let [.., first, second] = &self.points[..]
            && first.1 - first.0 == second.1 - second.0
            && new - recorded == second.1 - second.0
        {
            self.points.pop();
        }
        self.points.push((recorded, new));
    }

    /// The call that began at `enter` and ended at the last moment is made later: from `begin` to
    /// `end`.
    pub fn postpone(&mut self, enter: i64, (begin, end): (i64, i64)) {
        let Some((leave, _)) = self.points.pop() else {
            return;
        };
        while self.points.pop_if(|last| last.0 >= enter).is_some() {}
        self.push(enter, begin);
        self.push(leave, end);
    }

    /// A call before the last moment, recorded from `enter` to `leave`, takes longer by `by`.
    pub fn longer(&mut self, (enter, leave): (i64, i64), by: i64) {
        let (begin, end) = (self.ns(enter), self.ns(leave));
        let Some((recorded, new)) = self.points.pop() else {
            return;
        };
        while self.points.pop_if(|last| last.0 > enter).is_some() {}
        self.push(enter, begin);
        self.push(leave, end + by);
        self.push(recorded, new + by);
    }

    /// The time in the changed run of a recorded moment.
    pub fn ns(&self, recorded: i64) -> i64 {
        let next = self.points.partition_point(|point| point.0 <= recorded);
        let last = next.checked_sub(1).map(|last| self.points[last]);
        match (last, self.points.get(next)) {
            (Some(last), Some(next)) => between((last.0, next.0), (last.1, next.1), recorded),
            (Some(only), None) | (None, Some(&only)) => recorded.saturating_add(only.1 - only.0),
            (None, None) => recorded,
        }
    }
}

/// Where `at`, within the first interval, is in the second one.
fn between(from: (i64, i64), to: (i64, i64), at: i64) -> i64 {
    let part = i128::from(at - from.0) * i128::from(to.1 - to.0);
    to.0 + (part / i128::from(from.1 - from.0)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(points: &[(i64, i64)]) -> Moves {
        let mut moves = Moves::default();
        points.iter().for_each(|&(at, new)| moves.push(at, new));
        moves
    }

    #[track_caller]
    fn assert_times(moves: &Moves, times: &[(i64, i64)]) {
        for &(recorded, new) in times {
            assert_eq!(moves.ns(recorded), new, "{recorded} {moves:?}");
        }
        let all: Vec<i64> = (0..200).map(|at| moves.ns(at)).collect();
        assert!(all.is_sorted(), "{moves:?}");
    }

    #[test]
    fn told_moments_are_exact_and_those_between_linear() {
        let moves = moves(&[(10, 10), (30, 20), (40, 30), (50, 40), (60, 90)]);
        // What moves as one is told once.
        assert_eq!(moves.points.len(), 4);
        let times = [(0, 0), (20, 15), (30, 20), (45, 35), (55, 65), (70, 100)];
        assert_times(&moves, &times);
        assert_times(&Moves::default(), &[(7, 7)]);
    }

    #[test]
    fn an_enclosing_call_begins_before_those_in_it() {
        assert_times(
            &moves(&[(10, 10), (40, 40), (50, 45), (20, 15), (60, 55)]),
            &[(20, 20), (40, 40), (50, 45), (60, 55)],
        );
    }

    #[test]
    fn looks_that_are_not_needed_take_no_time() {
        // Looks from 20 on; one at 80 finds something at 35 already.
        let looks = [(10, 5), (20, 15), (30, 25), (70, 65), (80, 75)];
        let mut moves = moves(&looks);
        moves.push(80, 35);
        moves.push(85, 40);
        let times = [(10, 5), (20, 15), (39, 34), (40, 35), (80, 35), (85, 40)];
        assert_times(&moves, &times);
        // Not even one is needed.
        moves.push(90, 5);
        assert_times(&moves, &[(9, 4), (10, 5), (90, 5), (91, 6)]);
    }

    #[test]
    fn the_last_look_in_vain_takes_longer() {
        let mut moves = moves(&[(10, 10), (20, 20), (30, 30), (40, 40), (42, 42)]);
        moves.longer((30, 40), 50);
        moves.push(45, 95);
        assert_times(&moves, &[(30, 30), (40, 90), (42, 92), (45, 95)]);
    }

    #[test]
    fn a_postponed_call_comes_after_what_followed_it() {
        let mut moves = moves(&[(10, 10), (20, 20), (30, 20)]);
        moves.postpone(20, (25, 40));
        moves.push(35, 40);
        assert_times(&moves, &[(10, 10), (20, 25), (30, 40), (35, 40), (36, 41)]);
    }
}
