//! Anomalies of a location's file.

use std::collections::BTreeMap;

use laggard_report::{Anomaly, AnomalySeverity};
use laggard_trace::calls::user::STEER;
use laggard_trace::{
    Change, DamageKind, LIMIT_INTERNAL, LIMIT_PAUSED, LIMIT_REGIONS, LIMIT_SIZE, LIMIT_WRITE,
    Location, calls,
};

/// Anomalies of one location's file.
pub fn of_location(location: &Location) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let header = &location.header;
    let origin = format!("rank {}, thread {}", header.rank, header.thread);
    let mut add = |id: &str, severity, count: u64, detail: String| {
        found.push(Anomaly {
            id: id.to_owned(),
            severity,
            count,
            detail,
            origin: Some(origin.clone()),
        });
    };
    let mut damage: BTreeMap<DamageKind, (u64, u64)> = BTreeMap::new();
    for one in &location.damage {
        let (count, _) = damage.entry(one.what).or_insert((0, one.offset));
        *count += 1;
    }
    for (kind, (count, offset)) in damage {
        if kind == DamageKind::OpenBlock {
            continue; // Said below: the file was not closed.
        }
        let detail = format!("{}, first at offset {offset}", kind.describe());
        add("damaged_file", AnomalySeverity::Error, count, detail);
    }
    if let [pes, ..] = &location.definitions.properties("pes")[..] {
        let ranks = location.header.ranks;
        let detail = format!(
            "PEs of OpenSHMEM are not numbered as ranks of MPI are (there are {pes} and {ranks}): \
             its calls are not in the trace"
        );
        add("pes_are_not_ranks", AnomalySeverity::Warning, 1, detail);
    }
    let property = |key| location.definitions.properties(key).into_iter().next();
    if let Some(why) = property("not_sampled") {
        let detail = format!("no samples could be taken: {why}");
        add("not_sampled", AnomalySeverity::Warning, 1, detail);
    }
    if let Some(why) = property("not_steered") {
        let detail = format!("laggard steer could not reach the recording: {why}");
        add("not_steered", AnomalySeverity::Info, 1, detail);
    }
    let signatures = location.definitions.signatures().iter();
    let changes = signatures.filter(|signature| signature.operation == STEER);
    let changes: Vec<Change> = changes
        .filter_map(|one| Change::of(one.parameter))
        .collect();
    if !changes.is_empty() {
        let detail = "the recording was changed while it went on, by laggard steer: laggard dump tells \
            when, as laggard_steer, unless a profile alone was recorded";
        add("steered", AnomalySeverity::Info, 1, detail.to_owned());
    }
    if changes.contains(&Change::Refused) {
        let detail = "a change of the recording made no sense, or the file control was cut off: it \
            went on as before";
        add(
            "steering_refused",
            AnomalySeverity::Warning,
            1,
            detail.to_owned(),
        );
    }
    for why in location.definitions.properties("not_counted") {
        let detail = format!("a counter is missing: {why}");
        add("not_counted", AnomalySeverity::Warning, 1, detail);
    }
    for ran in location.definitions.properties("counter_ran") {
        let detail =
            format!("counters took turns, and are scaled: part of the time counted, {ran}");
        add("counters_scaled", AnomalySeverity::Warning, 1, detail);
    }
    for (id, level, detail) in [
        (
            "samples_lost",
            AnomalySeverity::Warning,
            "samples found no room: other functions than those told may have taken time",
        ),
        (
            "samples_nowhere",
            AnomalySeverity::Info,
            "samples were in code that belongs to no file, such as programs make while they run, or to a library \
                that was unloaded: its functions are not told",
        ),
        (
            "waits_left_out",
            AnomalySeverity::Warning,
            "waits for locks were not recorded: their threads made no other call, and the process has 256 \
                recorded threads already",
        ),
        (
            "regions_too_deep",
            AnomalySeverity::Warning,
            "parallel regions inside of eight others were not recorded",
        ),
    ] {
        let counts = location.definitions.properties(id);
        let counts = counts.iter().filter_map(|count| count.parse::<u64>().ok());
        let count = counts.fold(0, u64::saturating_add);
        if count > 0 {
            add(id, level, count, detail.to_owned());
        }
    }
    let Some(end) = location.end else {
        let detail = "the process was killed or left without MPI_Finalize; used up to the last \
            complete record";
        add(
            "truncated_trace",
            AnomalySeverity::Warning,
            1,
            detail.to_owned(),
        );
        if !location.definitions.regions().is_empty() {
            let detail = "of a process that was killed, regions are known from their records: not \
                phases, not instances of less than 20 us, and not those that were open";
            add(
                "regions_left_out",
                AnomalySeverity::Info,
                1,
                detail.to_owned(),
            );
        }
        return found;
    };
    if end.limits & LIMIT_SIZE != 0 {
        let detail = "LAGGARD_MAX_TRACE_MB was reached; from there on only the profile is known";
        add("size_limit", AnomalySeverity::Warning, 1, detail.to_owned());
    }
    if end.limits & LIMIT_WRITE != 0 {
        let detail = "the file system refused more; what came later is not in the trace";
        add("write_error", AnomalySeverity::Error, 1, detail.to_owned());
    }
    if end.limits & LIMIT_INTERNAL != 0 {
        let detail = "the collector stopped on an error of its own; what came later is not in the \
            trace";
        add(
            "collector_error",
            AnomalySeverity::Error,
            1,
            detail.to_owned(),
        );
    }
    if end.limits & LIMIT_PAUSED != 0 {
        let detail = "the recording was paused for some time or throughout, or left calls out: these are not \
            judged, and only those that other ranks' calls may match are in the trace";
        add("paused", AnomalySeverity::Info, 1, detail.to_owned());
    }
    if end.limits & LIMIT_REGIONS != 0 {
        let detail = "more regions of the program than are kept (65536, and 1024 of them open at \
            once): the time of the others is that of those around them";
        add(
            "regions_left_out",
            AnomalySeverity::Info,
            1,
            detail.to_owned(),
        );
    }
    if end.lost > 0 {
        let detail = "calls could not be recorded".to_owned();
        add("lost_calls", AnomalySeverity::Warning, end.lost, detail);
    }
    if end.unrecorded_threads > 0 {
        let detail =
            "threads that called MPI could not be recorded: no file could be made for them";
        let count = end.unrecorded_threads;
        add(
            "unrecorded_threads",
            AnomalySeverity::Warning,
            count,
            detail.to_owned(),
        );
    }
    // A program may end with it after its work.
    let mut signatures = location.definitions.signatures().iter();
    let exit = signatures.rfind(|s| calls::name(s.operation) == "shmem_global_exit");
    if let (3, Some(exit)) = (end.reason, exit) {
        let severity = match exit.parameter {
            0 => AnomalySeverity::Info,
            _ => AnomalySeverity::Warning,
        };
        let detail = format!("the program called shmem_global_exit({})", exit.parameter);
        add("global_exit", severity, 1, detail);
    } else if end.reason == 3 {
        let detail = "the program called MPI_Abort".to_owned();
        add("aborted", AnomalySeverity::Warning, 1, detail);
    }
    found
}

/// One row per id and severity: counts summed, the first detail, and the other origins; the worst
/// first.
pub fn merge_anomalies(mut anomalies: Vec<Anomaly>) -> Vec<Anomaly> {
    let key = |a: &Anomaly| (std::cmp::Reverse(a.severity), a.id.clone());
    anomalies.sort_by(|a, b| (key(a), &a.origin, &a.detail).cmp(&(key(b), &b.origin, &b.detail)));
    let mut merged: Vec<Anomaly> = Vec::new();
    let mut others = 0u64;
    let close = |last: Option<&mut Anomaly>, others: &mut u64| {
        if let Some(last) = last.filter(|_| *others > 0) {
            let origin = last
                .origin
                .take()
                .map_or(String::new(), |origin| format!("{origin} "));
            last.origin = Some(format!("{origin}and {others} more"));
        }
        *others = 0;
    };
    for anomaly in anomalies {
        match merged.last_mut() {
            Some(last) if key(last) == key(&anomaly) => {
                last.count = last.count.saturating_add(anomaly.count);
                others += 1;
            }
            last => {
                close(last, &mut others);
                merged.push(anomaly);
            }
        }
    }
    close(merged.last_mut(), &mut others);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::{
        Definition, End, FileHeader, LocationWriter, MemorySpace, Signature, Space,
    };
    use std::path::Path;

    fn written(end: Option<End>) -> Location {
        let mut header = FileHeader::new();
        header.ranks = 1;
        let mut writer = LocationWriter::new(MemorySpace::new(), header, None).unwrap();
        writer.push(1, 2, 1);
        let space = match end {
            Some(end) => writer.finish(end),
            None => {
                let mut space = MemorySpace::new();
                let (window, _) = space.advance(0).unwrap();
                header.checksum = header.expected_checksum();
                let bytes = zerocopy::IntoBytes::as_bytes(&header);
                // SAFETY: a window holds at least a page.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), window, bytes.len()) };
                space
            }
        };
        Location::from_bytes(Path::new("test.lgt"), &space.into_bytes()).unwrap()
    }

    fn ids(location: &Location) -> Vec<String> {
        of_location(location).into_iter().map(|a| a.id).collect()
    }

    #[test]
    fn closed_file_is_in_order() {
        assert_eq!(ids(&written(Some(End::default()))), Vec::<String>::new());
    }

    #[test]
    fn ends_are_explained() {
        let end = End {
            limits: LIMIT_SIZE | LIMIT_PAUSED | LIMIT_REGIONS,
            lost: 7,
            unrecorded_threads: 2,
            reason: 3,
            ..End::default()
        };
        assert_eq!(
            ids(&written(Some(end))),
            [
                "size_limit",
                "paused",
                "regions_left_out",
                "lost_calls",
                "unrecorded_threads",
                "aborted"
            ]
        );
        assert_eq!(ids(&written(None)), ["truncated_trace"]);
    }

    /// A global exit is no error, and not MPI_Abort.
    #[test]
    fn a_global_exit_is_told_with_its_status() {
        let told = |status: i64| {
            let mut header = FileHeader::new();
            header.ranks = 1;
            let mut writer = LocationWriter::new(MemorySpace::new(), header, None).unwrap();
            writer.define(&[Definition::Signature(Signature {
                id: 1,
                operation: 1028,
                parameter: status,
                ..Signature::default()
            })]);
            let end = End {
                reason: 3,
                ..End::default()
            };
            let bytes = writer.finish(end).into_bytes();
            let location = Location::from_bytes(Path::new("test.lgt"), &bytes).unwrap();
            let found = of_location(&location).remove(0);
            (found.id, found.severity, found.detail)
        };
        let row = |severity, status: i64| {
            let detail = format!("the program called shmem_global_exit({status})");
            ("global_exit".to_owned(), severity, detail)
        };
        assert_eq!(told(0), row(AnomalySeverity::Info, 0));
        assert_eq!(told(7), row(AnomalySeverity::Warning, 7));
    }

    #[test]
    fn equal_anomalies_become_one_row() {
        let one = |id: &str, severity, origin: &str| Anomaly {
            id: id.to_owned(),
            severity,
            count: 2,
            detail: "d".to_owned(),
            origin: Some(origin.to_owned()),
        };
        let merged = merge_anomalies(vec![
            one("a", AnomalySeverity::Info, "rank 1"),
            one("b", AnomalySeverity::Error, "rank 0"),
            one("a", AnomalySeverity::Info, "rank 0"),
        ]);
        let texts: Vec<_> = merged
            .iter()
            .map(|a| (a.id.as_str(), a.count, a.origin.as_deref().unwrap()))
            .collect();
        assert_eq!(texts, [("b", 2, "rank 0"), ("a", 4, "rank 0 and 1 more")]);
    }
}
