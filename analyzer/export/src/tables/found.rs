//! The tables of a report: findings, root causes, the critical path.

use anyhow::Result;
use laggard_report::layout::GLUE;
use laggard_report::{Bottleneck, PathRow as OnPath, Report, RootCause, SourceLocation, words};
use laggard_tables::trace::{FindingRow, PathRow, RootCauseRow, Rows, Tables, VictimRow};

use super::super::roots::Roots;
use super::{known, known_line};

/// Root causes, and who waited because of each.
pub fn root_causes(tables: &Tables, roots: &Roots) -> Result<()> {
    let (mut table, mut rows) = (tables.table::<RootCauseRow>()?, Rows::default());
    for (number, root) in (1..).zip(roots.all) {
        rows.push(root_cause_row(number, root));
        rows.flush(&mut table, false)?;
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    let (mut table, mut rows) = (tables.table::<VictimRow>()?, Rows::default());
    for (number, root) in (1..).zip(roots.all) {
        for victim in &root.victims {
            let place = &victim.location;
            rows.push(VictimRow {
                root_cause: number,
                pattern: victim.pattern.clone(),
                call: victim.operation.clone(),
                file: known(&place.file),
                line: known_line(place.line),
                function: known(&place.function),
                frames: known(&place.callpath.join(" > ")),
                ranks: victim.rank_set.clone(),
                severity_s: victim.severity_s,
            });
            rows.flush(&mut table, false)?;
        }
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    Ok(())
}

fn root_cause_row(number: u32, root: &RootCause) -> RootCauseRow {
    let (place, until) = (&root.location, root.until.as_ref());
    let end = |of: fn(&SourceLocation) -> Option<String>| until.and_then(|u| of(&u.location));
    RootCauseRow {
        root_cause: number,
        activity: root.activity.clone(),
        call: known(&root.operation),
        file: known(&place.file),
        line: known_line(place.line),
        function: known(&place.function),
        frames: known(&place.callpath.join(" > ")),
        until_call: until.map(|until| until.operation.clone()),
        until_file: end(|place| known(&place.file)),
        until_line: until.and_then(|until| known_line(until.location.line)),
        until_function: end(|place| known(&place.function)),
        until_frames: end(|place| known(&place.callpath.join(" > "))),
        ranks: root.rank_set.clone(),
        direct_s: root.direct_s,
        indirect_s: root.indirect_s,
        severity_s: root.severity_s,
        percent: root.percent,
        gain_s: root.gain_s,
        gain_percent: root.gain_percent,
        what: words::root_cause(root).replace(GLUE, " "),
    }
}

/// The activities of the critical path.
pub fn critical_path(tables: &Tables, report: &Report) -> Result<()> {
    let (mut table, mut rows) = (tables.table::<PathRow>()?, Rows::default());
    let path = report.critical_path.iter().flat_map(|path| &path.profile);
    for activity in path {
        rows.push(path_row(activity));
        rows.flush(&mut table, false)?;
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    Ok(())
}

fn path_row(activity: &OnPath) -> PathRow {
    let (place, until) = (&activity.location, activity.until.as_ref());
    let end = until.map(|until| &until.location);
    PathRow {
        kind: activity.kind.clone(),
        call: known(&activity.operation),
        file: known(&place.file),
        line: known_line(place.line),
        function: known(&place.function),
        frames: known(&place.callpath.join(" > ")),
        until_call: until.map(|until| until.operation.clone()),
        until_file: end.and_then(|end| known(&end.file)),
        until_line: end.and_then(|end| known_line(end.line)),
        until_function: end.and_then(|end| known(&end.function)),
        until_frames: end.and_then(|end| known(&end.callpath.join(" > "))),
        seconds: activity.seconds,
        share: activity.share,
        weight_share: activity.weight_share,
        imbalance_s: activity.imbalance_s,
        impact_s: activity.impact_s,
    }
}

pub fn findings(tables: &Tables, report: &Report) -> Result<()> {
    let (mut table, mut rows) = (tables.table::<FindingRow>()?, Rows::default());
    let roots = report.root_causes.as_deref().unwrap_or_default();
    for (number, finding) in (1..).zip(&report.bottlenecks) {
        rows.push(finding_row(number, finding, roots));
        rows.flush(&mut table, false)?;
    }
    rows.flush(&mut table, true)?;
    table.finish()?;
    Ok(())
}

fn finding_row(number: u32, finding: &Bottleneck, roots: &[RootCause]) -> FindingRow {
    let SourceLocation {
        file,
        line,
        function,
        callpath,
        ..
    } = &finding.location;
    let (cause, worst) = (finding.causes.first(), &finding.worst_instance);
    let root = finding.root_causes.first().and_then(|part| {
        let at = roots.iter().position(|root| root.id == part.id)?;
        Some((at as u32 + 1, part.share))
    });
    let ranks = || laggard_report::rank_ranges(finding.ranks.iter().map(|share| share.rank));
    FindingRow {
        finding: number,
        id: known(&finding.id),
        pattern: finding.pattern.clone(),
        call: finding.operation.clone(),
        type_: finding.operation_type.clone(),
        file: known(file),
        line: known_line(*line),
        function: known(function),
        frames: known(&callpath.join(" > ")),
        severity_s: finding.severity_s,
        percent: finding.percent,
        confidence: finding.confidence,
        calls: finding.calls,
        instances: finding.instances,
        mean_s: finding.mean_s,
        ranks: finding.rank_set.clone().unwrap_or_else(ranks),
        root_cause: root.map(|(number, _)| number),
        root_share: root.map(|(_, share)| share),
        cause_rank: cause.map(|cause| cause.rank),
        cause_call: cause.map(|cause| cause.operation.clone()),
        cause_file: cause.and_then(|cause| known(&cause.location.file)),
        cause_line: cause.and_then(|cause| known_line(cause.location.line)),
        cause_share: cause.map(|cause| cause.share),
        because: cause.and_then(|cause| known(&cause.because)),
        worst_rank: worst.as_ref().map(|worst| worst.rank),
        worst_start_s: worst.as_ref().map(|worst| worst.start_s),
        worst_end_s: worst.as_ref().map(|worst| worst.end_s),
    }
}
