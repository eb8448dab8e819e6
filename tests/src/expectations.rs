//! Compares a report with the directives of a source.

use std::collections::{BTreeMap, BTreeSet};

use crate::attempts::Off;
use crate::conserved;
use crate::directives::{
    Directives, Expect, Innocent, Line, Metric, Patterns, Place, Root, Silent, Tolerance,
};
use crate::report::{Bottleneck, Report, RootCause};

/// A cause or a rank with less than this fraction of a bottleneck is noise.
const NOISE: f64 = 0.1;

/// A difference from the expectation.
#[derive(Debug, PartialEq)]
pub struct Miss {
    /// Whether only times are off, so that a busy machine may be the reason.
    pub timing: bool,
    /// The expected and the reported value.
    pub text: String,
}

/// Whether an attempt with these misses passes.
///
/// # Errors
/// All misses, if there are any.
pub fn verdict(misses: &[Miss]) -> Result<(), Off> {
    let list: Vec<&str> = misses.iter().map(|miss| miss.text.as_str()).collect();
    let off = || Off {
        is_time: misses.iter().all(|miss| miss.timing),
        text: list.join("\n  "),
    };
    misses.is_empty().then_some(()).ok_or_else(off)
}

fn fact(text: String) -> Miss {
    Miss {
        timing: false,
        text,
    }
}

fn timing(text: String) -> Miss {
    Miss { timing: true, text }
}

/// All differences of the report from the expectations in the source `file`.
pub fn misses(directives: &Directives, file: &str, report: &Report) -> Vec<Miss> {
    let mut misses = invariants(report);
    if report.run.ranks != directives.run.ranks {
        misses.push(fact(format!("the report has {} ranks", report.run.ranks)));
    }
    if let Some(locations) = directives.locations
        && report.run.locations != locations
    {
        let have = report.run.locations;
        misses.push(fact(format!(
            "{locations} locations expected, {have} reported"
        )));
    }
    for expect in &directives.expects {
        misses.extend(of_expect(expect, file, report));
    }
    // If any times of the run are off, the machine also caused some of these misses.
    let calm = !misses.iter().any(|miss| miss.timing);
    for expect in &directives.expects {
        misses.extend(of_causes(expect, file, report).map(|text| Miss {
            timing: !calm,
            text,
        }));
    }
    for silent in &directives.silents {
        misses.extend(of_silent(silent, file, report));
    }
    for metric in &directives.metrics {
        misses.extend(of_metric(metric, report));
    }
    for root in &directives.roots {
        misses.extend(of_root(root, file, report));
    }
    for innocent in &directives.innocents {
        misses.extend(of_innocent(innocent, file, report));
    }
    misses.extend(of_anomalies(directives, report));
    misses
}

/// Conditions that every report must meet.
pub fn invariants(report: &Report) -> Vec<Miss> {
    let mut misses = Vec::new();
    let mut must = |holds: bool, text: &dyn Fn() -> String| {
        if !holds {
            misses.push(fact(text()));
        }
    };
    must(report.schema == "laggard-report/1", &|| {
        format!("schema {:?}", report.schema)
    });
    must(
        report.locations.len() == report.run.locations as usize,
        &|| format!("{} locations listed", report.locations.len()),
    );
    for pair in report.bottlenecks.windows(2) {
        must(pair[0].severity_s >= pair[1].severity_s, &|| {
            format!("not the largest first:{}{}", line(&pair[0]), line(&pair[1]))
        });
    }
    let mut rows = BTreeSet::new();
    for b in &report.bottlenecks {
        let row = (&b.pattern, &b.operation, &b.location.callpath);
        must(rows.insert(row), &|| format!("twice:{}", line(b)));
        let mut causes = BTreeSet::new();
        for c in &b.causes {
            let cause = (c.rank, &c.operation, &c.location.callpath);
            must(causes.insert(cause), &|| {
                format!("a cause twice:{}", line(b))
            });
        }
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 + 1e-6 * b.abs();
        let ranks = b.ranks.iter().map(|r| r.severity_s).sum::<f64>();
        let instances = b.ranks.iter().map(|r| r.instances).sum::<u64>();
        must(b.severity_s >= 0.0, &|| format!("negative:{}", line(b)));
        must(near(ranks, b.severity_s), &|| {
            format!("the ranks' severities add up to {ranks}:{}", line(b))
        });
        must(instances == b.instances, &|| {
            format!("the ranks' instances add up to {instances}:{}", line(b))
        });
        must(b.instances <= b.calls, &|| {
            format!("more instances than calls:{}", line(b))
        });
        must((0.0..=1.0).contains(&b.confidence), &|| {
            format!("confidence {}:{}", b.confidence, line(b))
        });
        must(
            b.causes
                .iter()
                .all(|c| (0.0..=1.0 + 1e-9).contains(&c.share)),
            &|| format!("a share above one:{}", line(b)),
        );
        if let Some(worst) = &b.worst_instance {
            let duration = worst.end_s - worst.start_s;
            must(worst.severity_s <= duration + 1e-6, &|| {
                format!("the worst instance waits longer than it lasts:{}", line(b))
            });
        }
    }
    misses.extend(conserved::differences(report).into_iter().map(fact));
    misses
}

/// The bottlenecks of a pattern at a place of the program.
fn fitting<'a>(
    patterns: &Patterns,
    place: &Place,
    file: &str,
    report: &'a Report,
) -> Vec<&'a Bottleneck> {
    let fits = |b: &&Bottleneck| {
        patterns.contains(&b.pattern)
            && place.at.is_none_or(|at| b.location.is(file, at))
            && place.via.is_none_or(|via| b.location.leads_over(file, via))
            && place.operation.as_ref().is_none_or(|o| *o == b.operation)
            && place.function.as_ref().is_none_or(|f| {
                b.location
                    .function
                    .as_ref()
                    .is_some_and(|have| have.contains(f))
            })
    };
    report.bottlenecks.iter().filter(fits).collect()
}

fn of_expect(expect: &Expect, file: &str, report: &Report) -> Vec<Miss> {
    let title = format!("{file}:{}: EXPECT {}", expect.line, expect.patterns);
    let found = fitting(&expect.patterns, &expect.place, file, report);
    if found.is_empty() {
        let others = report
            .bottlenecks
            .iter()
            .filter(|b| expect.patterns.contains(&b.pattern));
        let others: String = others.map(line).collect();
        let place = &expect.place;
        return vec![fact(format!(
            "{title}: nothing at {place:?}; elsewhere:{others}"
        ))];
    }
    let here: String = found.iter().map(|b| line(b)).collect();
    let mut misses = Vec::new();
    let severity: f64 = found.iter().map(|b| b.severity_s).sum();
    let instances: u64 = found.iter().map(|b| b.instances).sum();
    if !within(severity, expect.severity, expect.tolerance, instances) {
        let wanted = expect.severity;
        misses.push(timing(format!(
            "{title}: {severity:.4} s instead of {wanted:.4} s:{here}"
        )));
    }
    if expect.instances.is_some_and(|wanted| wanted != instances) {
        misses.push(timing(format!("{title}: {instances} instances:{here}")));
    }
    let shares = of_ranks(expect, &found)
        .into_iter()
        .chain(of_cause_shares(expect, &found));
    misses.extend(shares.map(|text| timing(format!("{title}: {text}:{here}"))));
    misses
}

/// A rank that causes more or less than it should. [`wrong_cause`] checks, independent of times,
/// that all of them are causes at all.
fn of_cause_shares(expect: &Expect, found: &[&Bottleneck]) -> Option<String> {
    let wanted = expect.cause_ranks.iter().flatten();
    let mut wanted = wanted.filter_map(|(rank, share)| Some((*rank, (*share)?)));
    wanted.find_map(|(rank, wanted)| {
        let causes = found.iter().flat_map(|b| &b.causes);
        let of: Vec<_> = causes.filter(|cause| cause.rank == rank).collect();
        if of.is_empty() {
            return None;
        }
        let severity: f64 = of.iter().map(|cause| cause.severity_s).sum();
        let instances = found.iter().map(|b| b.instances).sum();
        let off = !within(severity, wanted, expect.tolerance, instances);
        off.then(|| format!("rank {rank} causes {severity:.4} s instead of {wanted:.4} s"))
    })
}

fn of_ranks(expect: &Expect, found: &[&Bottleneck]) -> Option<String> {
    let wanted = expect.ranks.as_ref()?;
    let mut have = BTreeMap::new();
    for share in found.iter().flat_map(|b| &b.ranks) {
        let entry = have.entry(share.rank).or_insert((0.0, 0));
        entry.0 += share.severity_s;
        entry.1 += share.instances;
    }
    let noise = NOISE * expect.severity / wanted.len() as f64;
    have.retain(|_, (severity, _)| *severity > noise);
    let mut ranks: Vec<u32> = wanted.iter().map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    if !have.keys().eq(ranks.iter()) {
        return Some(format!(
            "ranks {:?} lose time",
            have.keys().collect::<Vec<_>>()
        ));
    }
    wanted.iter().find_map(|(rank, share)| {
        let (severity, instances) = have[rank];
        let wanted = (*share)?;
        let off = !within(severity, wanted, expect.tolerance, instances);
        off.then(|| format!("rank {rank} loses {severity:.4} s instead of {wanted:.4} s"))
    })
}

fn of_causes(expect: &Expect, file: &str, report: &Report) -> Option<String> {
    let found = fitting(&expect.patterns, &expect.place, file, report);
    let here: String = found.iter().map(|b| line(b)).collect();
    let wrong = wrong_cause(expect, file, &found).filter(|_| !found.is_empty())?;
    Some(format!(
        "{file}:{}: EXPECT {}: {wrong}:{here}",
        expect.line, expect.patterns
    ))
}

fn wrong_cause(expect: &Expect, file: &str, found: &[&Bottleneck]) -> Option<String> {
    let severity: f64 = found.iter().map(|b| b.severity_s).sum();
    let causes = found.iter().flat_map(|b| &b.causes);
    let causes: Vec<_> = causes.filter(|c| c.severity_s > NOISE * severity).collect();
    let asked = expect.cause_line.is_some() || expect.cause_operation.is_some();
    if causes.is_empty() && (asked || expect.cause_ranks.is_some() || expect.because.is_some()) {
        return Some("no cause".into());
    }
    if let Some(wanted) = &expect.cause_ranks {
        let mut have: Vec<u32> = causes.iter().map(|c| c.rank).collect();
        have.sort_unstable();
        have.dedup();
        let wanted: Vec<u32> = wanted.iter().map(|(rank, _)| *rank).collect();
        if have != wanted {
            return Some(format!("caused by ranks {have:?} instead of {wanted:?}"));
        }
    }
    for cause in &causes {
        if let Some(line) = expect.cause_line
            && !cause.location.is(file, line)
        {
            return Some(format!(
                "caused at {:?} instead of line {line}",
                cause.location
            ));
        }
        if let Some(operation) = &expect.cause_operation
            && *operation != cause.operation
        {
            return Some(format!(
                "caused by {} instead of {operation}",
                cause.operation
            ));
        }
    }
    let because = expect.because.as_ref()?;
    let says = |text: &str| text.to_lowercase().contains(&because.to_lowercase());
    let silent = !causes.iter().any(|c| says(&c.because));
    silent.then(|| format!("no cause says {because:?}"))
}

fn of_silent(silent: &Silent, file: &str, report: &Report) -> Option<Miss> {
    let found = fitting(&silent.patterns, &silent.place, file, report);
    let mut total: f64 = found.iter().map(|b| b.severity_s).sum();
    if silent.place == Place::default() {
        total = total.max(total_of(&silent.patterns, report).0);
    }
    let title = format!("{file}:{}: SILENT {}", silent.line, silent.patterns);
    let here: String = found.iter().map(|b| line(b)).collect();
    (total >= silent.below).then(|| timing(format!("{title}: {total:.4} s:{here}")))
}

fn of_metric(metric: &Metric, report: &Report) -> Option<Miss> {
    let (total, instances) = total_of(&metric.patterns, report);
    let wanted = metric.total;
    let title = format!("line {}: METRIC {} {wanted}", metric.line, metric.patterns);
    if metric.instances.is_some_and(|wanted| wanted != instances) {
        return Some(timing(format!("{title}: {instances} instances")));
    }
    let fits = within(total, wanted, metric.tolerance, instances);
    (!fits).then(|| timing(format!("{title}: {total:.4} s in {instances} instances")))
}

/// Whether a root cause is this call, or the computation before it; any if there is none.
fn is_root_at(found: &RootCause, file: &str, at: Option<Line>) -> bool {
    let place = found.until.as_ref().unwrap_or(&found.location);
    at.is_none_or(|at| place.is(file, at))
}

fn of_root(root: &Root, file: &str, report: &Report) -> Option<Miss> {
    let fits =
        |found: &&RootCause| found.activity == root.activity && is_root_at(found, file, root.at);
    let mut have: BTreeMap<u32, f64> = BTreeMap::new();
    let found = report.root_causes.iter().filter(fits);
    for share in found.flat_map(|found| &found.ranks) {
        *have.entry(share.rank).or_default() += share.severity_s;
    }
    let wrong = root.ranks.iter().any(|(rank, wanted)| {
        let have = have.get(rank).copied().unwrap_or(0.0);
        let near = |wanted| within(have, wanted, root.tolerance, 1);
        have == 0.0 || wanted.is_some_and(|wanted| !near(wanted))
    });
    let named = |rank: &u32| root.ranks.iter().any(|(named, _)| named == rank);
    let all: f64 = have.values().sum();
    let others = have.iter().filter(|(rank, _)| !named(rank));
    let others: f64 = others.map(|(_, severity)| severity).sum();
    let title = format!("{file}:{}: ROOT {}", root.line, root.activity);
    (wrong || others > NOISE * all).then(|| timing(format!("{title}: ranks cause {have:?} s")))
}

fn of_innocent(innocent: &Innocent, file: &str, report: &Report) -> Option<Miss> {
    let all: f64 = report
        .root_causes
        .iter()
        .map(|found| found.severity_s)
        .sum();
    let here = report.root_causes.iter();
    let here = here.filter(|found| is_root_at(found, file, innocent.at));
    let parts = here.flat_map(|found| &found.ranks);
    let is_named = |rank: u32| innocent.ranks.is_empty() || innocent.ranks.contains(&rank);
    let parts: Vec<_> = parts.filter(|part| is_named(part.rank)).collect();
    let caused: f64 = parts.iter().map(|part| part.severity_s).sum();
    let title = format!("{file}:{}: NO_ROOT", innocent.line);
    (caused >= innocent.below * all && caused > 0.0)
        .then(|| timing(format!("{title}: {caused} of {all} s: {parts:?}")))
}

/// Seconds and instances of some patterns over the run.
fn total_of(patterns: &Patterns, report: &Report) -> (f64, u64) {
    let found = patterns.0.iter().filter_map(|p| report.metrics.get(p));
    found.fold((0.0, 0), |sum, m| (sum.0 + m.total_s, sum.1 + m.instances))
}

fn of_anomalies(directives: &Directives, report: &Report) -> Vec<Miss> {
    let mut misses = Vec::new();
    for wanted in &directives.anomalies {
        let count = report.anomaly(&wanted.id);
        if count != wanted.count {
            misses.push(fact(format!(
                "{} of {wanted:?}; {:?}",
                count, report.anomalies
            )));
        }
        let mut fitting = report.anomalies.iter().filter(|a| a.id == wanted.id);
        if let Some(detail) = &wanted.detail
            && !fitting.any(|a| a.detail.contains(detail))
        {
            misses.push(fact(format!("no {wanted:?}; {:?}", report.anomalies)));
        }
    }
    for have in &report.anomalies {
        let expected = directives.anomalies.iter().any(|a| a.id == have.id);
        if !expected && have.severity != "info" {
            misses.push(fact(format!("an anomaly that is none: {have:?}")));
        }
    }
    misses
}

fn within(have: f64, wanted: f64, tolerance: Tolerance, instances: u64) -> bool {
    let allowed = tolerance.relative * wanted + tolerance.absolute * instances as f64;
    (have - wanted).abs() <= allowed
}

/// A bottleneck in one line, for messages.
fn line(b: &Bottleneck) -> String {
    let causes: Vec<String> = b
        .causes
        .iter()
        .map(|c| {
            let (line, because) = (c.location.line.unwrap_or(0), &c.because);
            format!(
                "{:.4} s by rank {} {} line {line} ({because})",
                c.severity_s, c.rank, c.operation
            )
        })
        .collect();
    let ranks: Vec<String> = b
        .ranks
        .iter()
        .map(|r| format!("{}:{:.4}", r.rank, r.severity_s))
        .collect();
    let place = &b.location;
    format!(
        "\n    {} {} {:.4} s in {} of {} calls, {}:{} {}, ranks {}; {}",
        b.pattern,
        b.operation,
        b.severity_s,
        b.instances,
        b.calls,
        place.file.as_deref().unwrap_or("?"),
        place.line.unwrap_or(0),
        place.function.as_deref().unwrap_or("?"),
        ranks.join(" "),
        causes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "// RUN np=2\n\
        // EXPECT late_sender at=@recv severity=0.3 ranks=1 instances=5 cause_rank=0:0.3 cause_line=@send because=comput\n\
        // SILENT late_receiver\n\
        // METRIC late_sender 0.3\n\
        recv(); // MARK recv\n\
        send(); // MARK send\n";

    const REPORT: &str = r#"{"schema": "laggard-report/1",
        "run": {"program": "./app", "ranks": 2, "locations": 0, "models": ["mpi"], "wall_time_s": 1, "operations": 10},
        "locations": [],
        "metrics": {"late_sender": {"total_s": 0.31, "percent": 10, "instances": 5}},
        "bottlenecks": [{"pattern": "late_sender", "operation": "MPI_Recv",
            "location": {"file": "a/app.c", "line": 5, "function": "main", "callpath": ["main app.c:5"]},
            "severity_s": 0.31, "percent": 10, "confidence": 1, "calls": 5, "instances": 5,
            "ranks": [{"rank": 1, "severity_s": 0.31, "instances": 5}],
            "causes": [{"rank": 0, "operation": "MPI_Send", "location": {"file": "app.c", "line": 6},
                        "severity_s": 0.31, "share": 1, "because": "computed 0.3 s before the send"}],
            "worst_instance": {"rank": 1, "start_s": 0.1, "end_s": 0.2, "severity_s": 0.06}}],
        "anomalies": []}"#;

    /// The misses after a change of the report's text.
    fn after(from: &str, to: &str) -> Vec<Miss> {
        let directives = Directives::parse(SOURCE).expect("source");
        assert!(REPORT.contains(from), "{from}");
        let report = Report::parse(&REPORT.replace(from, to)).expect("report");
        misses(&directives, "app.c", &report)
    }

    #[test]
    fn a_fitting_report_has_no_misses() {
        assert_eq!(after("", ""), []);
    }

    #[test]
    fn wrong_times_are_told_apart_from_wrong_facts() {
        let cases = [
            ("\"total_s\": 0.31", "\"total_s\": 0.36", true, "METRIC"),
            ("0.31", "0.36", true, "instead of"),
            ("\"instances\": 5", "\"instances\": 4", true, "4 instances"),
            (
                "\"rank\": 1, \"severity_s\"",
                "\"rank\": 0, \"severity_s\"",
                true,
                "lose time",
            ),
            (
                "\"severity_s\": 0.31, \"share\"",
                "\"severity_s\": 0.25, \"share\"",
                true,
                "rank 0 causes",
            ),
            ("\"line\": 5", "\"line\": 7", false, "nothing at"),
            ("\"line\": 6", "\"line\": 7", false, "caused at"),
            (
                "{\"rank\": 0, \"op",
                "{\"rank\": 1, \"op",
                false,
                "caused by ranks [1]",
            ),
            ("computed", "waited", false, "no cause says"),
            ("[\"mpi\"]", "[\"mpi\"], \"x\": 1", false, ""),
            (
                "\"calls\": 5",
                "\"calls\": 4",
                false,
                "more instances than calls",
            ),
        ];
        for (from, to, timing, text) in cases {
            let misses = after(from, to);
            if text.is_empty() {
                assert_eq!(misses, [], "{from}");
                continue;
            }
            assert!(
                misses.iter().any(|m| m.text.contains(text)),
                "{from}: {misses:?}"
            );
            assert!(
                misses.iter().all(|m| m.timing == timing),
                "{from}: {misses:?}"
            );
        }
    }

    #[test]
    fn an_innocent_rank_among_the_causes_is_found() {
        let source = "// RUN np=3\n// NO_ROOT ranks=1,2\n// NO_ROOT at=@send below=0.5\nsend(); // MARK send\n";
        let directives = Directives::parse(source).expect("source");
        let misses = |rank: u32, line: u32, part: f64| {
            let root = |rank: u32, line: u32, part: f64| {
                format!(
                    r#"{{"activity": "computation", "location": {{}}, "until": {{"file": "app.c", "line": {line}}},
                     "ranks": [{{"rank": {rank}, "severity_s": {part}}}], "direct_s": {part},
                     "indirect_s": 0, "severity_s": {part}}}"#
                )
            };
            let list = [root(0, 9, 1.0 - part), root(rank, line, part)].join(",");
            let text = format!(r#""anomalies": [], "root_causes": [{list}]"#);
            let text = REPORT.replace("\"anomalies\": []", &text);
            let report = Report::parse(&text).expect("report");
            let innocents = directives.innocents.iter();
            let misses = innocents.filter_map(|one| of_innocent(one, "app.c", &report));
            misses.map(|miss| miss.text).collect::<Vec<_>>()
        };
        assert_eq!(misses(2, 9, 0.04), [""; 0]);
        assert_eq!(misses(0, 4, 0.4), [""; 0]);
        assert!(misses(2, 9, 0.06)[0].contains("app.c:2: NO_ROOT: 0.06"));
        assert!(misses(0, 4, 0.6)[0].contains("app.c:3: NO_ROOT: 0.6"));
    }

    #[test]
    fn unexpected_anomalies_and_loud_near_misses_are_found() {
        let anomaly =
            r#""anomalies": [{"id": "lost", "severity": "warning", "count": 1, "detail": ""}]"#;
        let found = after("\"anomalies\": []", anomaly);
        assert!(
            found[0].text.contains("an anomaly that is none"),
            "{found:?}"
        );
        let loud =
            r#""metrics": {"late_receiver": {"total_s": 0.02, "percent": 1, "instances": 1},"#;
        let found = after("\"metrics\": {", loud);
        assert!(found[0].text.contains("SILENT late_receiver"), "{found:?}");
    }
}
