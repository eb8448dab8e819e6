//! Exports, as third-party libraries read them: pyarrow, DuckDB, Perfetto's own messages.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_patterns::PatternId;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, PROCESSOR_TIME, TIMEOUT, reader};
use laggard_trace::calls::number::MPI_Comm_size;
use laggard_trace::{Definition, End, FileHeader, LocationWriter, MemorySpace, Signature};
use serde_json::Value;

/// Messages of `programs/attacks/traffic.c`.
const MESSAGES: u64 = 150;
const BYTES: u64 = 10 * (32 + 100 + 4000 + 16 + 32);
/// Requests of its Startall except the last ones; each is a row of its own.
const PARTS: u64 = 20;

/// A test with the trace of that program on 4 ranks.
struct Recorded {
    bench: Bench,
    trace: PathBuf,
}

impl Recorded {
    fn new(test: &str) -> Recorded {
        let bench = Bench::sharing(test);
        let program = bench.compile("attacks/traffic.c", &[], &[]);
        let run = bench.traced(4, &[program.as_os_str()], "trace");
        run.run().expect_orderly().expect_success();
        let trace = bench.path("trace");
        Recorded { bench, trace }
    }

    /// The outcome of `laggard export` with these words.
    fn export(&self, to: &str, output: &str, options: &[&str]) -> Outcome {
        export(&self.bench, &self.trace, to, output, options)
    }

    /// The file or directory of a successful export.
    fn exported(&self, to: &str, output: &str, options: &[&str]) -> PathBuf {
        self.export(to, output, options)
            .expect_orderly()
            .expect_success();
        self.bench.path(output)
    }

    /// Output of a script with third-party libraries for these files.
    fn read(&self, script: &str, files: &[&Path]) -> Value {
        let mut command = reader(script);
        command.args(files);
        let outcome = process::run(&mut command, TIMEOUT, &self.bench.path("reader"));
        let text = outcome.expect_success().stdout;
        serde_json::from_str(&text).expect("JSON")
    }

    fn report(&self) -> Value {
        let path = self.bench.path("report.json");
        let outcome = self.bench.analyze(&self.trace, 1, &path, &["--all", "-q"]);
        outcome.expect_orderly().expect_success();
        let text = fs::read_to_string(&path).expect("a report");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Calls by name, as `laggard info` counts them.
    fn info(&self) -> BTreeMap<String, u64> {
        let mut command = Command::new(&self.bench.command);
        command.arg("info").arg(&self.trace);
        let outcome = process::run(&mut command, TIMEOUT, &self.bench.path("info"));
        let text = outcome.expect_success().stdout;
        let calls = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            // Files that last are recorded, too.
            let mut calls = (0..=u16::MAX).filter_map(laggard_trace::calls::call);
            let name = words.next()?;
            if !name.starts_with("MPI_") && !calls.any(|c| c.is_posix() && c.name == name) {
                return None;
            }
            Some((name.to_owned(), words.next()?.parse().ok()?))
        });
        calls.collect()
    }
}

fn export(bench: &Bench, trace: &Path, to: &str, output: &str, options: &[&str]) -> Outcome {
    let mut command = Command::new(&bench.command);
    command.arg("export").arg(trace).args(["--to", to, "-o"]);
    command.arg(bench.path(output)).args(options);
    process::run(&mut command, TIMEOUT, &bench.path("export"))
}

/// The command failed, and one line says why.
#[track_caller]
fn refused(outcome: &Outcome, why: &str) {
    let said = &outcome.stderr;
    let lines = said.lines().filter(|line| !line.contains(": note: "));
    assert_eq!((outcome.code, lines.count()), (Some(1), 1), "{said}");
    assert!(said.contains(why), "{said}");
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn ns(seconds: &Value) -> u64 {
    (seconds.as_f64().expect("seconds") * 1e9).round() as u64
}

#[test]
fn tables_are_what_two_other_libraries_read() {
    let recorded = Recorded::new("export-tables");
    let report = recorded.report();
    let beside = recorded.trace.join("report.json");
    fs::copy(recorded.bench.path("report.json"), beside).expect("a report");
    let parquet = recorded.exported("parquet", "parquet", &[]);
    let arrow = recorded.exported("arrow", "arrow", &[]);
    let tables = recorded.read("tables.py", &[&parquet, &arrow]);
    let tables = tables.as_object().expect("tables");
    let sum = |table: &str, column: &str| number(&tables[table]["duckdb"]["sums"][column]);
    let rows = |table: &str| number(&tables[table]["duckdb"]["rows"]);
    assert_eq!(tables.len(), 18);
    for (name, table) in tables {
        assert_eq!(table["pyarrow"], table["duckdb"], "{name}");
        assert_eq!(table["same_in_arrow"], Value::Bool(true), "{name}");
    }
    let calls: u64 = recorded.info().values().sum();
    assert_eq!(sum("operations", "calls"), calls);
    assert_eq!(sum("profile", "calls"), calls);
    assert_eq!(rows("operations"), calls + PARTS);
    let by_location = &tables["operations"]["rows_per_group"];
    assert_eq!(by_location.as_array().map(Vec::len), Some(4));
    // One message is never received.
    assert_eq!(rows("messages"), MESSAGES + 1);
    assert_eq!(sum("messages", "bytes"), BYTES + 4);
    assert_eq!(rows("collective_members"), sum("collectives", "members"));
    let metrics = report["metrics"].as_object().expect("metrics");
    assert_eq!(
        sum("waits", "lost_ns"),
        of_calls(metrics)
            .map(|metric| ns(&metric["total_s"]))
            .sum::<u64>()
    );
    let findings = report["bottlenecks"].as_array().map_or(0, Vec::len) as u64;
    assert_eq!(rows("findings"), findings);
    let roots = report["root_causes"].as_array().expect("root causes");
    let list = |one: &Value, key: &str| one[key].as_array().map_or(0, Vec::len) as u64;
    assert_eq!(rows("root_causes"), roots.len() as u64);
    let victims = roots.iter().map(|root| list(root, "victims"));
    assert_eq!(rows("victims"), victims.sum::<u64>());
    let path = list(&report["critical_path"], "profile");
    assert_eq!(rows("critical_path"), path);
    assert!(path > 0);
    // Findings and waits name theirs: rc1 is 1.
    let first = report["bottlenecks"].as_array().expect("findings").iter();
    let first = first.filter_map(|found| found["root_causes"][0]["id"].as_str());
    let numbers = first.map(|id| id[2..].parse::<u64>().expect("a number"));
    assert_eq!(sum("findings", "root_cause"), numbers.sum::<u64>());
    assert!(sum("waits", "root_cause") > 0);
    // The same bytes on one thread, and if the report is named.
    let report = recorded.bench.path("report.json");
    let report = report.to_str().expect("a path");
    let again = recorded.exported("parquet", "again", &["--threads", "1", "--report", report]);
    for file in fs::read_dir(&parquet).expect("tables") {
        let file = file.expect("a table").file_name();
        let read = |directory: &Path| fs::read(directory.join(&file)).expect("a table");
        assert!(read(&parquet) == read(&again), "{file:?}");
    }
    questions(&recorded, &parquet);
}

/// The questions of the document have correct answers.
fn questions(recorded: &Recorded, tables: &Path) {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tables/QUESTIONS.md");
    let answers = recorded.read("questions.py", &[&document, tables]);
    let answers = answers.as_array().expect("answers");
    assert_eq!(answers.len(), 5);
    let rows = |at: usize| -> Vec<Vec<String>> {
        serde_json::from_value(answers[at]["rows"].clone()).expect("rows")
    };
    assert_eq!(rows(0)[0], ["0", "1", "30", "11080"]);
    let sizes = rows(1);
    let messages = sizes
        .iter()
        .map(|row| row[1].parse::<u64>().expect("messages"));
    assert_eq!(messages.sum::<u64>(), MESSAGES + 1);
    let late = rows(2);
    let worst = late.iter().max_by(|a, b| {
        let ms = |row: &[String]| row[1].parse::<f64>().expect("ms");
        ms(a).total_cmp(&ms(b))
    });
    assert_eq!(worst.expect("late senders")[2], "0");
    let path = "main traffic.c:85 > late traffic.c:34";
    let received = rows(3);
    let received = received.iter().find(|row| row[1] == path);
    assert_eq!(
        received.expect("the late receive")[..3],
        ["MPI_Recv", path, "10"]
    );
    assert!(rows(4).iter().all(|row| row[3] == "4" || row[3] == "2"));
}

/// Losses of single calls.
fn of_calls(metrics: &serde_json::Map<String, Value>) -> impl Iterator<Item = &Value> {
    let together = PatternId::TOGETHER.map(PatternId::id);
    let metrics = metrics
        .iter()
        .filter(move |(id, _)| !together.contains(&&***id));
    metrics.map(|(_, metric)| metric)
}

#[test]
fn time_lines_have_every_call_message_and_rank() {
    let recorded = Recorded::new("export-perfetto");
    let line = recorded.exported("perfetto", "line", &[]);
    let line = recorded.read("perfetto_trace.py", &[&line]);
    assert_eq!(line["problems"], Value::Array(Vec::new()));
    let calls: BTreeMap<String, u64> =
        serde_json::from_value(line["calls"].clone()).expect("calls");
    assert_eq!(calls, recorded.info());
    assert_eq!(number(&line["flows"]), MESSAGES);
    assert_eq!(number(&line["flow_tracks"]["rank 0 > rank 1"]), 30);
    assert_eq!(number(&line["flow_tracks"]["rank 2 > rank 0"]), 20);
    let ranks = ["rank 0", "rank 1", "rank 2", "rank 3"];
    assert_eq!(line["tracks"], serde_json::json!(ranks));
    // Rank 0 works in each round, while rank 1 waits. Each such wait leads to its send.
    assert!(
        number(&line["of_roots"]["rank 0"]) >= 10,
        "{}",
        line["of_roots"]
    );
    assert!(
        number(&line["hops"]["rank 1 > rank 0"]) >= 10,
        "{}",
        line["hops"]
    );
    // What rank 0 works starts these waits.
    assert!(
        number(&line["started"]["rank 0 > rank 1"]) >= 10,
        "{}",
        line["started"]
    );
    // At the end nothing is under way, and nobody waits.
    for counter in ["messages in flight", "threads waiting"] {
        let values = line["counters"][counter].as_array().expect(counter);
        assert_eq!((values[0].as_i64(), values[2].as_i64()), (Some(0), Some(0)));
        assert!(values[1].as_i64() > Some(0), "{counter}");
    }
    let report = recorded.report();
    let metrics = report["metrics"].as_object().expect("metrics");
    let instances = of_calls(metrics).map(|metric| number(&metric["instances"]));
    assert_eq!(number(&line["slices"]["wait"]), instances.sum::<u64>());
    let lost = of_calls(metrics).map(|metric| ns(&metric["total_s"]));
    assert_eq!(number(&line["values"]["lost (ns)"]), lost.sum::<u64>());
    assert_eq!(number(&line["values"]["where=traffic.c:34 late"]), 10);
    // The critical path is that of the report, and leads to calls of the same rank.
    let path = line["critical_path"].as_object().expect("a path");
    let known = &report["critical_path"];
    let length: u64 = path.values().map(number).sum();
    assert_eq!(length, ns(&known["length_s"]));
    // The report's parts of ranks leave start-up out.
    let mut startup = length;
    for share in known["ranks"].as_array().expect("ranks") {
        let name = format!("rank {}", share["rank"]);
        assert!(number(&path[&name]) >= ns(&share["seconds"]), "{name}");
        startup -= ns(&share["seconds"]);
    }
    assert_eq!(startup, ns(&known["startup_s"]));
    let to_calls = line["path_flows"].as_object().expect("flows");
    for (way, _) in to_calls {
        let (from, to) = way.split_once(" > ").expect("two tracks");
        assert_eq!(from, to);
    }
    assert!(to_calls.len() > 1, "{to_calls:?}");
    trace_processor(&recorded, &line);
    selections(&recorded, &line);
}

/// Perfetto's own processor reads the same.
fn trace_processor(recorded: &Recorded, line: &Value) {
    let answers = recorded.read("trace_processor.py", &[&recorded.bench.path("line")]);
    let rows = |query: &str| answers[query].as_array().expect("rows");
    assert_eq!(answers["problems"], Value::Array(Vec::new()));
    assert_eq!(number(&rows("open")[0]["number"]), 0);
    let mut calls = BTreeMap::new();
    let (mut waits, mut roots, mut received) = (0, 0, 0);
    for row in rows("slices") {
        let count = number(&row["number"]);
        match (row["category"].as_str(), row["name"].as_str()) {
            (Some("wait"), _) => waits += count,
            (Some("root cause"), _) => roots += count,
            (Some("critical path" | "start"), _) => {}
            (Some("message"), _) => received += count,
            (_, name) => {
                calls.insert(name.expect("a name").to_owned(), count);
            }
        }
    }
    assert_eq!(calls, recorded.info());
    assert_eq!(waits, number(&line["slices"]["wait"]));
    assert_eq!(received, number(&line["instants"]));
    let lost: u64 = rows("lost").iter().map(|row| number(&row["ns"])).sum();
    assert_eq!(lost, number(&line["values"]["lost (ns)"]));
    assert_eq!(roots, number(&line["slices"]["root cause"]));
    let hops = line["hops"].as_object().expect("hops").values();
    let flows = rows("flows").iter();
    let flows = flows.map(|row| {
        (
            row["kind"].as_str().expect("a kind"),
            number(&row["number"]),
        )
    });
    let to_calls = line["path_flows"].as_object().expect("flows").values();
    let started = line["started"].as_object().expect("flows").values();
    let known = [
        ("message", MESSAGES),
        ("hop", hops.map(number).sum()),
        ("path", to_calls.map(number).sum()),
        ("started", started.map(number).sum()),
    ];
    assert_eq!(flows.collect::<BTreeMap<_, _>>(), BTreeMap::from(known));
    for row in rows("path") {
        let name = row["name"].as_str().expect("a rank");
        assert_eq!(row["ns"], line["critical_path"][name], "{name}");
    }
    let late = |row: &&Value| row["sent"] == "MPI_Send" && row["received"] == "MPI_Recv";
    let late: u64 = rows("ends")
        .iter()
        .filter(late)
        .map(|row| number(&row["number"]))
        .sum();
    // A late message in each of ten rounds, and one after the wildcards.
    assert_eq!(late, 20);
    let tracks = rows("tracks").iter().map(|row| row["name"].as_str());
    let is_own = |name: &Option<&str>| !matches!(name, Some("root causes" | "critical path"));
    let tracks: Vec<_> = tracks.filter(is_own).collect();
    let counters = ["messages in flight", "threads waiting"];
    let ranks = ["rank 0", "rank 1", "rank 2", "rank 3"];
    let all = ["traffic on 4 ranks"].iter().chain(&counters).chain(&ranks);
    assert!(all.map(|&name| Some(name)).eq(tracks));
    for row in rows("counters") {
        let name = row["name"].as_str().expect("a name");
        let known = &line["counters"][name];
        let values = [&row["least"], &row["most"]].map(Value::as_f64);
        assert_eq!(values, [known[0].as_f64(), known[1].as_f64()], "{name}");
    }
}

/// Selections contain what they should, and no more.
fn selections(recorded: &Recorded, all: &Value) {
    let read = |name: &str, options: &[&str]| {
        let line = recorded.exported("perfetto", name, options);
        let line = recorded.read("perfetto_trace.py", &[&line]);
        assert_eq!(line["problems"], Value::Array(Vec::new()), "{name}");
        line
    };
    let ranks = read("ranks", &["--ranks", "0-1"]);
    assert_eq!(ranks["tracks"], serde_json::json!(["rank 0", "rank 1"]));
    // Flows between these two: around the ring, late, in pairs.
    assert_eq!(number(&ranks["flows"]), 10 + 10 + 20 + 10);
    let slices = |line: &Value| -> u64 {
        let calls = line["calls"].as_object().expect("calls");
        calls.values().map(number).sum()
    };
    let half = number(&all["last_ns"]) as f64 / 2e9;
    let half = format!("{half}");
    let (before, after) = (
        read("before", &["--until", &half]),
        read("after", &["--from", &half]),
    );
    let both = slices(&before) + slices(&after);
    // Slices that cross the border are in both: one of each rank at most.
    assert!((slices(all)..=slices(all) + 4).contains(&both), "{both}");
    // A late sender is 20 ms late.
    let long = read("long", &["--min-duration", "0.01"]);
    assert!(number(&long["calls"]["MPI_Recv"]) >= 10);
    assert!(slices(&long) < slices(all));
    let around = read("around", &["--around", "1"]);
    assert!(slices(&around) < slices(all) && number(&around["slices"]["wait"]) > 0);
    let outcome = recorded.export("perfetto", "no", &["--around", "1000"]);
    refused(&outcome, "--around 1000: the report has");
    let outcome = recorded.export("perfetto", "no", &["--from", "1e6"]);
    refused(&outcome, "no call is left by");
    assert!(!recorded.bench.path("no").exists());
}

/// What a stencil computes after each exchange is not below the function that exchanges.
#[test]
fn computation_is_not_below_functions_that_may_have_been_left() {
    // Of 20 steps, all but the last are between two exchanges.
    const LEAST_MS: u64 = 19 * 5 * 2;
    let bench = Bench::beside("export-stencil");
    let program = bench.compile("attacks/stencil.c", &[], &[]);
    let run = bench.traced(2, &[program.as_os_str()], "trace");
    run.run().expect_orderly().expect_success();
    let trace = bench.path("trace");
    let outcome = export(&bench, &trace, "folded", "folded", &[]);
    outcome.expect_orderly().expect_success();
    let folded = fs::read_to_string(bench.path("folded")).expect("lines");
    let is_step = |line: &&str| {
        let Some(between) = line.strip_prefix("main stencil.c;between MPI_Waitall at stencil.c:")
        else {
            return false;
        };
        between.contains(" exchange and MPI_Irecv at stencil.c:")
            && between.contains(" exchange;[computation] ")
    };
    let steps: Vec<&str> = folded.lines().filter(is_step).collect();
    let [step] = steps[..] else {
        panic!("{folded}")
    };
    let ns: u64 = step
        .rsplit(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .expect("ns");
    assert!(ns >= LEAST_MS * 1_000_000, "{folded}");
}

#[test]
fn stacks_add_up_to_the_time_of_all_ranks() {
    let recorded = Recorded::new("export-stacks");
    let tables = recorded.exported("parquet", "tables", &[]);
    let arrow = recorded.exported("arrow", "arrow", &[]);
    let tables = recorded.read("tables.py", &[&tables, &arrow]);
    let places = &tables["locations"]["duckdb"]["sums"];
    let all = number(&places["last_ns"]) - number(&places["first_ns"]);
    let inside = number(&tables["operations"]["duckdb"]["sums"]["inside_ns"]);
    let folded = recorded.exported("folded", "folded", &[]);
    let folded = fs::read_to_string(&folded).expect("lines");
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for line in folded.lines() {
        let (stack, ns) = line.rsplit_once(' ').expect("a stack and ns");
        let kind = stack.rsplit(';').next().expect("a kind");
        *sums.entry(kind.to_owned()).or_default() += ns.parse::<u64>().expect("ns");
    }
    assert_eq!(sums.values().sum::<u64>(), all);
    // Requests of Startall are part of its own time, too.
    let calls = sums["[communication]"] + sums["[waiting]"];
    assert!(calls <= inside && calls + sums["[computation]"] == all);
    assert!(folded.contains("main traffic.c:85;late traffic.c:34;MPI_Recv;[waiting] "));
    let speedscope = recorded.exported("speedscope", "speedscope", &[]);
    let speedscope = fs::read_to_string(&speedscope).expect("a profile");
    let speedscope: Value = serde_json::from_str(&speedscope).expect("JSON");
    for profile in speedscope["profiles"].as_array().expect("profiles") {
        let weights = profile["weights"].as_array().expect("weights").iter();
        let sum: u64 = weights.map(number).sum();
        assert_eq!(number(&profile["endValue"]), sum);
        let name = profile["name"].as_str().expect("a name");
        assert_eq!(
            sum,
            *sums.get(&format!("[{name}]")).unwrap_or(&all),
            "{name}"
        );
    }
    let pprof = recorded.exported("pprof", "pprof", &[]);
    let pprof = recorded.read("pprof_profile.py", &[&pprof]);
    assert_eq!(number(&pprof["sums"]["time"]), all);
    assert_eq!(number(&pprof["sums"]["waiting"]), sums["[waiting]"]);
    assert_eq!(pprof["empty_first"], Value::Bool(true));
    let graph = recorded.exported("flamegraph", "flame.svg", &[]);
    let graph = fs::read_to_string(&graph).expect("SVG");
    assert!(graph.contains("</svg>") && graph.contains("[waiting]"));
}

/// The report's own numbers, to rounding.
#[track_caller]
fn same(found: f64, reported: &Value) {
    let reported = reported.as_f64().expect("seconds");
    assert!((found - reported).abs() < 1e-7, "{found} {reported}");
}

/// The report, and the profile for Cube, of which all sums are those of the report.
fn profile_of(recorded: &Recorded) -> (Value, Value) {
    let report = recorded.report();
    let beside = recorded.trace.join("report.json");
    fs::copy(recorded.bench.path("report.json"), beside).expect("a report");
    let profile = recorded.exported("cubex", "profile.cubex", &[]);
    let cube = recorded.read("cubex.py", &[&profile]);
    let metrics = cube["metrics"].as_object().expect("metrics");
    let value = |value: &Value| value.as_f64().expect("a number");
    let locations = report["locations"].as_array().expect("locations");
    for (at, location) in locations.iter().enumerate() {
        for (metric, key) in [
            ("time", "wall_s"),
            ("computation", "computation_s"),
            ("communication", "communication_s"),
            ("synchronization", "synchronization_s"),
            ("io", "io_s"),
        ] {
            same(value(&metrics[metric]["threads"][at]), &location[key]);
        }
        for part in ["blocked", "preempted", "kernel"] {
            let told = location[format!("{part}_s")].as_f64().unwrap_or(0.0);
            same(value(&metrics[part]["threads"][at]), &told.into());
        }
    }
    for row in report["call_tree"]["metrics"].as_array().expect("metrics") {
        let id = row["id"].as_str().expect("an id");
        let found = metrics.get(id).map_or(0.0, |metric| value(&metric["sum"]));
        let whole = row["nodes"].as_array().into_iter().flatten().next();
        let whole = whole.map_or(0.0, |run| value(&run["time_s"]["inclusive"]));
        assert!((found - whole).abs() < 1e-7, "{id}: {found} {whole}");
        assert!(
            whole == 0.0 || metrics[id]["parent"] == row["parent"],
            "{id}"
        );
    }
    (report, cube)
}

/// The same of two ranks of `programs/processor`, off their processors.
fn profile_of_two(source: &str, what: &str) -> (Value, Value) {
    let bench = Bench::sharing(&format!("export-cubex-{what}"));
    let program = bench.compile(&format!("processor/{source}"), &[], &["-lpthread"]);
    let words = [program.as_os_str(), OsStr::new(what)];
    let run = bench.traced(2, &words, "trace").env(PROCESSOR_TIME, "1");
    run.run().expect_orderly().expect_success();
    let trace = bench.path("trace");
    profile_of(&Recorded { bench, trace })
}

#[test]
fn profiles_for_cube_have_what_calls_lost_together() {
    let (report, cube) = profile_of_two("in_calls.c", "shared");
    let lost = report["metrics"]["without_processor"]["total_s"].as_f64();
    let metric = &cube["metrics"]["without_processor"];
    let paths = metric["paths"].as_object().expect("call paths").iter();
    let paths = paths.filter(|(path, _)| path.ends_with(" > MPI_Reduce"));
    let of_reductions: f64 = paths.filter_map(|(_, lost)| lost.as_f64()).sum();
    let is_most = lost.is_some_and(|lost| lost > 0.1 && of_reductions > 0.9 * lost);
    assert!(is_most, "{lost:?} {metric}");
}

#[test]
fn profiles_for_cube_of_paused_runs_are_the_report() {
    profile_of_two("sampled.c", "paused");
}

#[test]
fn profiles_for_cube_are_the_report() {
    let (report, cube) = profile_of(&Recorded::new("export-cubex"));
    let metrics = cube["metrics"].as_object().expect("metrics");
    let value = |value: &Value| value.as_f64().expect("a number");
    let run = &report["call_tree"]["nodes"][0];
    let of = |metric: &str| metrics[metric]["sum"].as_u64();
    assert_eq!(of("visits"), run["calls"]["inclusive"].as_u64());
    assert_eq!(of("bytes"), run["bytes"]["inclusive"].as_u64());
    for root in report["root_causes"].as_array().expect("root causes") {
        let ranks = root["ranks"].as_array().expect("ranks").iter();
        let sum: f64 = ranks.map(|rank| value(&rank["severity_s"])).sum();
        let metric = &metrics[root["id"].as_str().expect("an id")];
        assert!((value(&metric["sum"]) - sum).abs() < 1e-7, "{root}");
        assert_eq!(metric["parent"], "caused");
    }
    let late = &metrics["late_sender"]["paths"];
    let mut late = late.as_object().expect("call paths").iter();
    let is_there =
        late.any(|(path, lost)| path.ends_with(" > main > late > MPI_Recv") && value(lost) > 0.1);
    assert!(is_there, "{metrics:?}");
    let hosts = cube["hosts"].as_object().expect("hosts");
    assert_eq!(
        hosts.values().collect::<Vec<_>>(),
        [&serde_json::json!([0, 1, 2, 3])]
    );
}

#[test]
fn what_cannot_be_exported_is_said_in_one_line() {
    let recorded = Recorded::new("export-refused");
    let there = recorded.bench.path("there");
    fs::write(&there, "mine").expect("a file");
    for to in [
        "parquet",
        "arrow",
        "perfetto",
        "flamegraph",
        "folded",
        "speedscope",
        "pprof",
        "otf2",
    ] {
        refused(&recorded.export(to, "there", &[]), "there exists:");
        refused(&recorded.export(to, "none/out", &[]), "none/out");
    }
    assert_eq!(fs::read_to_string(&there).expect("a file"), "mine");
    let outcome = recorded.export("papyrus", "out", &[]).expect_orderly();
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("parquet") && outcome.stderr.contains("perfetto"));
    let before = recorded.report();
    assert!(before["bottlenecks"].is_array());
    // A killed rank: the rest is exported, with a note.
    let killed = recorded.trace.join("rank000003.thread000.lgt");
    let file = OpenOptions::new()
        .write(true)
        .open(&killed)
        .expect("a location");
    let size = file.metadata().expect("a location").len();
    file.set_len(size / 2).expect("a shorter location");
    let outcome = recorded.export("parquet", "rest", &[]);
    let outcome = outcome.expect_orderly().expect_success();
    assert!(
        outcome.stderr.contains("laggard: note: "),
        "{}",
        outcome.stderr
    );
    assert!(recorded.bench.path("rest/operations.parquet").is_file());
    // For an archive, a note says the same, and that nothing is marked. A report about another
    // trace is refused.
    let other = recorded.bench.path("report.json");
    let options = ["--report", &other.to_string_lossy()];
    refused(
        &recorded.export("otf2", "none-of-it", &options),
        "about another trace",
    );
    let outcome = recorded.export("otf2", "archive", &[]);
    let outcome = outcome.expect_orderly().expect_success();
    assert!(
        outcome.stderr.contains("the process was killed"),
        "{outcome}"
    );
    assert!(
        outcome.stderr.contains("no findings are marked"),
        "{outcome}"
    );
    // No temporary file stays.
    let names = fs::read_dir(&recorded.bench.dir).expect("the test's directory");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    assert!(
        names
            .into_iter()
            .all(|name| !name.to_string_lossy().ends_with(".tmp"))
    );
}

#[test]
fn a_time_line_that_is_too_large_is_proposed_in_parts() {
    let bench = Bench::sharing("export-large");
    let trace = bench.path("trace");
    fs::create_dir(&trace).expect("a directory");
    let mut header = FileHeader::new();
    (header.ranks, header.ticks_per_s) = (1, 1_000_000_000);
    let mut writer = LocationWriter::new(MemorySpace::new(), header, None).expect("a location");
    writer.define(&[Definition::Signature(Signature {
        id: 1,
        operation: MPI_Comm_size,
        ..Signature::default()
    })]);
    let calls = 4_000_001;
    for at in 0..calls {
        writer.push(10 * at, 10 * at + 1, 1);
    }
    let end = End {
        calls,
        recorded: calls,
        end_ticks: 10 * calls,
        ..End::default()
    };
    let bytes = writer.finish(end).into_bytes();
    fs::write(trace.join(laggard_trace::file_name(0, 0)), bytes).expect("a location");
    let outcome = export(&bench, &trace, "perfetto", "line", &[]);
    refused(&outcome, "more than a browser shows");
    let said = outcome.stderr;
    let proposal = said.split("--from ").nth(1).expect("a proposal");
    let words: Vec<&str> = proposal.split([' ', ',', ';']).collect();
    assert!(!bench.path("line").exists());
    let options = ["--from", words[0], "--until", words[2], "-q"];
    export(&bench, &trace, "perfetto", "line", &options).expect_success();
}
