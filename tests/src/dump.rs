//! Costs of patterns, computed anew from `laggard dump`: slowly, but straight from the definitions,
//! to check reports of real programs.

use std::collections::BTreeMap;

use crate::report::{Bottleneck, Report};

/// One line of a dump; times in ns.
#[derive(Debug)]
struct Call<'t> {
    rank: u32,
    enter: i64,
    leave: i64,
    operation: &'t str,
    /// `key=value`, and words.
    what: Vec<(&'t str, &'t str)>,
}

/// All calls of a trace.
#[derive(Debug)]
pub struct Dump<'t> {
    calls: Vec<Call<'t>>,
}

/// The party that members of a collective wait for.
#[derive(Clone, Copy, Debug)]
enum Late {
    Root,
    Last,
}

/// Patterns of single calls of these operations, and the late party.
const COLLECTIVES: &[(&str, &[&str], Late)] = &[
    (
        "late_broadcast",
        &["MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"],
        Late::Root,
    ),
    ("wait_at_barrier", &["MPI_Barrier"], Late::Last),
    (
        "wait_at_nxn",
        &[
            "MPI_Allgather",
            "MPI_Allgatherv",
            "MPI_Allreduce",
            "MPI_Alltoall",
            "MPI_Alltoallv",
            "MPI_Alltoallw",
            "MPI_Reduce_scatter",
            "MPI_Reduce_scatter_block",
        ],
        Late::Last,
    ),
    ("wait_at_finalize", &["MPI_Finalize"], Late::Last),
];

impl<'t> Call<'t> {
    fn parse(line: &'t str) -> Option<Call<'t>> {
        let (head, _place) = match line.ends_with(" part") {
            true => (line, ""),
            false => line.rsplit_once("  ")?,
        };
        let mut words = head.split_whitespace();
        let (rank, _thread) = words.next()?.split_once('/')?;
        let ns = |text: &str| text.replace('.', "").parse::<i64>().ok();
        let (enter, duration) = (ns(words.next()?)?, ns(words.next()?)?);
        Some(Call {
            rank: rank.parse().ok()?,
            enter,
            leave: enter + duration,
            operation: words.next()?,
            what: words
                .map(|w| w.split_once('=').unwrap_or((w, "")))
                .collect(),
        })
    }

    fn value(&self, key: &str) -> Option<&'t str> {
        let found = self.what.iter().find(|(k, _)| *k == key);
        found.map(|(_, value)| *value)
    }

    /// Peer and tag of the half that begins with `to` or `from`.
    fn half(&self, key: &str) -> Option<(&'t str, &'t str)> {
        let at = self.what.iter().position(|(k, _)| *k == key)?;
        let tag = self.what[at..].iter().find(|(k, _)| *k == "tag")?;
        Some((self.what[at].1, tag.1))
    }

    fn moves_bytes(&self) -> bool {
        let moved = |key| self.value(key).is_some_and(|bytes| bytes != "0");
        moved("sent") || moved("received")
    }

    /// Waiting of this call for something that came at `late`.
    fn wait(&self, late: i64) -> i64 {
        (late.min(self.leave) - self.enter).max(0)
    }
}

impl<'t> Dump<'t> {
    /// Reads the output of `laggard dump`.
    ///
    /// # Panics
    /// At a line that a dump does not have.
    pub fn parse(text: &'t str) -> Dump<'t> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let parse = |line| Call::parse(line).unwrap_or_else(|| panic!("no call: {line:?}"));
        Dump {
            calls: lines.map(parse).collect(),
        }
    }

    /// Differences of a report, and how many of its numbers could be compared.
    pub fn compare(&self, report: &Report) -> (Vec<String>, usize) {
        let mut wrong = Vec::new();
        let mut compared = 0;
        let mut compare = |what: String, computed: f64, said: f64| {
            compared += usize::from(computed > 0.0);
            if (computed - said).abs() > 1e-8 {
                wrong.push(format!("{what}: {said} reported, {computed} by the dump"));
            }
        };
        for &(pattern, operations, late) in COLLECTIVES {
            let said = report.metrics.get(pattern).map_or(0.0, |m| m.total_s);
            compare(pattern.to_owned(), self.collectives(operations, late), said);
        }
        for found in &report.bottlenecks {
            let worst = found.worst_instance.as_ref();
            if let Some((worst, computed)) = worst.zip(self.worst_receive(found)) {
                let what = format!("{} {} {worst:?}", found.pattern, found.operation);
                compare(what, computed, worst.severity_s);
            }
        }
        (wrong, compared)
    }

    /// Waiting in these collectives, s.
    fn collectives(&self, operations: &[&str], late: Late) -> f64 {
        let mut next: BTreeMap<(u32, &str, Option<&str>), usize> = BTreeMap::new();
        let mut instances: BTreeMap<(&str, Option<&str>, usize), Vec<&Call>> = BTreeMap::new();
        let fitting = |call: &&Call| operations.contains(&call.operation);
        for call in self.calls.iter().filter(fitting) {
            let group = call.value("comm");
            let n = next.entry((call.rank, call.operation, group)).or_default();
            let key = (call.operation, group, *n);
            instances.entry(key).or_default().push(call);
            *n += 1;
        }
        let waits = instances.values().flat_map(|members| {
            let is_root = |call: &Call| call.value("root") == Some(&call.rank.to_string());
            let late = match late {
                Late::Last => members.iter().map(|call| call.enter).max(),
                Late::Root => members.iter().find(|c| is_root(c)).map(|call| call.enter),
            };
            let waiting = members
                .iter()
                .filter(move |call| call.value("root").is_none() || call.moves_bytes());
            waiting.map(move |call| late.map_or(0, |late| call.wait(late)))
        });
        waits.sum::<i64>() as f64 / 1e9
    }

    /// Waiting in the worst instance of a late sender, s. `None` if it is not a blocking receive,
    /// or if a wildcard leaves open which message it got.
    fn worst_receive(&self, found: &Bottleneck) -> Option<f64> {
        let worst = found.worst_instance.as_ref()?;
        if found.operation != "MPI_Recv" || !found.pattern.starts_with("late_sender") {
            return None;
        }
        let enter = (worst.start_s * 1e9).round() as i64;
        let of_rank = |rank| self.calls.iter().filter(move |call| call.rank == rank);
        let receive = of_rank(worst.rank)
            .find(|call| call.enter == enter && call.operation == found.operation)?;
        let (group, channel) = (receive.value("comm"), receive.half("from")?);
        let receives = || of_rank(worst.rank).filter(move |call| call.value("comm") == group);
        let is_wild = |call: &Call| {
            let wild = |key| call.value(key).is_some();
            wild("any_source") || wild("any_tag")
        };
        if receives().any(is_wild) {
            return None;
        }
        let mut posted = receives().filter(|call| call.half("from") == Some(channel));
        let n = posted.position(|call| call.enter == enter)?;
        let to = worst.rank.to_string();
        let mut sent = of_rank(channel.0.parse().ok()?).filter(|call| {
            call.value("comm") == group && call.half("to") == Some((to.as_str(), channel.1))
        });
        Some(receive.wait(sent.nth(n)?.enter) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
# rank/thread  enter, s  duration, µs  call  what  where
0/0 0.000000100        1.000 MPI_Recv       from=1 tag=7 bytes=8 comm=world  a.c:4 main
0/0 0.000002000        0.500 MPI_Bcast      root=1 sent=0 received=8 comm=world  a.c:5 main
1/0 0.000000000        0.010 MPI_Irecv      from=0 tag=7 bytes=8 comm=world request=#0  a.c:6 main
1/0 0.000000400        0.100 MPI_Sendrecv   to=0 tag=7 bytes=8 from=0 tag=9 bytes=8 comm=world  a.c:7 main
1/0 0.000002300        0.100 MPI_Bcast      root=1 sent=8 received=0 comm=world  a.c:8 operator==
";

    fn report(bcast: &str, receive: &str) -> Report {
        let text = format!(
            r#"{{"schema": "", "run": {{"program": "a", "ranks": 2, "locations": 2, "models": [],
             "wall_time_s": 1, "operations": 5}}, "locations": [], "anomalies": [],
             "metrics": {{"late_broadcast": {{"total_s": {bcast}, "percent": 1, "instances": 1}}}},
             "bottlenecks": [{{"pattern": "late_sender", "operation": "MPI_Recv", "location": {{}},
               "severity_s": 1, "percent": 1, "confidence": 1, "calls": 1, "instances": 1,
               "ranks": [], "causes": [], "worst_instance": {{"rank": 0, "start_s": 1e-7,
               "end_s": 1.1e-6, "severity_s": {receive}}}}}]}}"#
        );
        Report::parse(&text).expect("a report")
    }

    #[test]
    fn waits_are_computed_from_the_calls() {
        let dump = Dump::parse(DUMP);
        assert_eq!(dump.compare(&report("3e-7", "3e-7")), (Vec::new(), 2));
        let (wrong, _) = dump.compare(&report("2e-7", "4e-7"));
        assert_eq!(wrong.len(), 2, "{wrong:?}");
    }
}
