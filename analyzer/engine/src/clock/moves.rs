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
        let mut cut = None;
        while let Some(last) = self
            .points
            .pop_if(|last| last.1 > new || last.0 == recorded)
        {
            cut = (last.0 < recorded).then_some(last.0).or(cut);
        }
        if let Some(last) = self.points.last()
            && let Some(cut) = cut
        {
            let until = last.0.saturating_add(new - last.1).min(cut);
            if until > last.0 {
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

    /// The last moment comes later by `by`.
    pub fn later(&mut self, by: i64) {
        if let Some(last) = self.points.last_mut() {
            last.1 += by;
        }
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
            (Some(last), Some(next)) => {
                let part = i128::from(recorded - last.0) * i128::from(next.1 - last.1);
                last.1 + (part / i128::from(next.0 - last.0)) as i64
            }
            (Some(only), None) | (None, Some(&only)) => recorded.saturating_add(only.1 - only.0),
            (None, None) => recorded,
        }
    }
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
    }

    #[test]
    fn the_last_look_in_vain_takes_longer() {
        let mut moves = moves(&[(10, 10), (20, 20), (30, 30), (40, 40), (42, 42)]);
        moves.longer((30, 40), 50);
        moves.push(45, 95);
        assert_times(&moves, &[(30, 30), (40, 90), (42, 92), (45, 95)]);
    }

    #[test]
    fn a_call_is_waited_for_after_it() {
        let mut moves = moves(&[(10, 10), (20, 10)]);
        moves.later(5);
        moves.push(30, 25);
        assert_times(&moves, &[(10, 10), (20, 15), (30, 25)]);
    }
}
