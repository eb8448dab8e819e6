//! Compares a filtered report with its trace's expectations: false alarms and misses.

use laggard_report::{Bottleneck, Report};

use laggard_generator::{Expected, Finding, place_of};

/// From this share of a rank's time on, percent, a loss must be found.
pub const MUCH: f64 = 2.0;
/// A cause that is due to at least this share of the first one's time may come first: not every
/// instance was looked at.
const AS_MUCH: f64 = 0.9;

/// The findings that an analysis of a trace must report.
pub struct Oracle<'e> {
    expected: &'e Expected,
    /// Largest share of its time that a rank lost, percent.
    pub lost: f64,
    /// The findings that a report must have.
    must: Vec<&'e Finding>,
}

impl<'e> Oracle<'e> {
    /// The expected findings: every one that cost a rank [`MUCH`] and, where a rank lost that much
    /// only at several places together, the one that cost it most.
    pub fn new(expected: &'e Expected) -> Oracle<'e> {
        let times = &expected.locations;
        let part = |rank: usize, ns: u64| 100.0 * ns as f64 / times.wall_ns[rank].max(1) as f64;
        let lost = |finding: &Finding| {
            let ranks = finding.ranks.iter();
            let parts = ranks.map(|share| part(share.rank as usize, share.severity_ns));
            parts.fold(0.0, f64::max)
        };
        let findings = expected.findings.iter();
        let mut must: Vec<&Finding> = findings.filter(|found| lost(found) >= MUCH).collect();
        let ranks = times.waiting_ns.iter().enumerate();
        let worst = ranks
            .map(|(rank, &ns)| (rank, part(rank, ns)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let (worst, most) = worst.unwrap_or_default();
        if most >= MUCH && must.is_empty() {
            let of_worst = |found: &&Finding| {
                let mut ranks = found.ranks.iter();
                let share = ranks.find(|share| share.rank as usize == worst);
                share.map_or(0, |share| share.severity_ns)
            };
            must.extend(expected.findings.iter().max_by_key(of_worst));
        }
        Oracle {
            expected,
            lost: most,
            must,
        }
    }

    /// Whether there is something to find.
    pub fn is_faulty(&self) -> bool {
        !self.must.is_empty() || !self.expected.unmatched.is_empty()
    }

    /// Expected findings that a report lacks, a line each.
    pub fn missed(&self, report: &Report) -> Vec<String> {
        let mut missed = Vec::new();
        for wanted in &self.must {
            let found = report.bottlenecks.iter().find(|found| is_at(found, wanted));
            let cause = found
                .and_then(|found| found.causes.first())
                .map(|cause| cause.rank);
            if found.is_none() || !may_come_first(wanted, cause) {
                missed.push(format!(
                    "{} in {} at {}:{} due to rank {:?}, {} ns; reported: {:?} due to rank {cause:?}",
                    wanted.pattern,
                    wanted.at.operation,
                    wanted.at.file,
                    wanted.at.line,
                    wanted.causes.first().map(|cause| cause.rank),
                    wanted.severity_ns,
                    found.map(|found| found.severity_s)
                ));
            }
        }
        for lost in &self.expected.unmatched {
            let at = format!("{} at {}:{}", lost.at.operation, lost.at.file, lost.at.line);
            let is_told = report.anomalies.iter().any(|row| {
                row.id == lost.id && row.count == lost.count && row.detail.ends_with(&at)
            });
            if !is_told {
                missed.push(format!("{} {}", lost.id, at));
            }
        }
        missed
    }

    /// Findings of a report in which nobody lost time; for a clean program, all its findings. A
    /// line each.
    pub fn false_alarms(&self, report: &Report, is_clean: bool) -> Vec<String> {
        let findings = &self.expected.findings;
        let is_one =
            |found: &&Bottleneck| is_clean || !findings.iter().any(|wanted| is_at(found, wanted));
        let alarms = report.bottlenecks.iter().filter(is_one);
        let text = |found: &Bottleneck| {
            let (pattern, operation, s) = (&found.pattern, &found.operation, found.severity_s);
            format!("{pattern} in {operation}, {s} s")
        };
        alarms.map(text).collect()
    }
}

/// Whether a finding of a report is this expected one.
fn is_at(found: &Bottleneck, wanted: &Finding) -> bool {
    found.pattern == wanted.pattern && place_of(found) == wanted.at
}

/// Whether a rank may be the first cause. Findings that are due to nobody have none.
fn may_come_first(wanted: &Finding, rank: Option<u32>) -> bool {
    let Some(first) = wanted.causes.first() else {
        return rank.is_none();
    };
    let much = (first.severity_ns as f64 * AS_MUCH) as u64;
    let mut causes = wanted.causes.iter().filter(|c| c.severity_ns >= much);
    causes.any(|cause| Some(cause.rank) == rank)
}
