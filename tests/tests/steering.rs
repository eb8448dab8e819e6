//! `laggard steer`: a recording is paused and changed while its program runs, and nobody else can do that.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use laggard_tests::browser::Browser;
use laggard_tests::process::{self, Launched};
use laggard_tests::product::{Bench, TIMEOUT};
use laggard_tests::report::Report;
use laggard_tests::served::{PATIENCE, client, hear, start, status};
use laggard_tests::tour::settle_on;
use serde_json::Value;

const RANKS: u32 = 3;
const GOES_ON: Duration = Duration::from_millis(200);
/// A user who runs none of this.
const SOMEBODY: u32 = 12_345;

/// A program that works in rounds until it is told to end.
struct Running {
    bench: Bench,
    program: Launched,
    file: PathBuf,
}

impl Running {
    /// `prepare` may put something into the trace directory before it starts.
    fn new(test: &str, env: &[(&str, &str)], prepare: impl FnOnce(&Path)) -> Running {
        Running::scene(("ends", RANKS), test, env, prepare)
    }

    /// The same for a scene of the program, which has so many locations.
    fn scene(
        (scene, locations): (&str, u32),
        test: &str,
        env: &[(&str, &str)],
        prepare: impl FnOnce(&Path),
    ) -> Running {
        let bench = Bench::beside(test);
        let program = bench.compile("attacks/goes_on.c", &[], &[]);
        prepare(&bench.path("trace"));
        let file = bench.path("told");
        let resume = bench.path("resume");
        let words = [&*program, &*file, Path::new(scene), &*resume];
        let words = words.map(Path::as_os_str);
        let mut run = bench.traced(RANKS, &words, "trace");
        for (name, value) in env {
            run = run.env(name, *value);
        }
        let mut command = run.command();
        command.stdout(Stdio::null());
        command.stderr(fs::File::create(bench.path("stderr")).expect("a file"));
        let program = Launched::new(&mut command);
        let mut running = Running {
            bench,
            program,
            file,
        };
        let begun = Instant::now();
        let says_all = |bench: &Bench| {
            let mut info = Command::new(&bench.command);
            let info = info.arg("info").arg(bench.path("trace")).output();
            let text = info.expect("the command").stdout;
            String::from_utf8_lossy(&text).contains(&format!("Locations  {locations}\n"))
        };
        while !says_all(&running.bench) {
            assert!(begun.elapsed() < PATIENCE);
            assert!(running.program.try_wait().expect("a child").is_none());
            std::thread::sleep(Duration::from_millis(10));
        }
        running
    }

    fn trace(&self) -> PathBuf {
        self.bench.path("trace")
    }

    /// What the command says, and how it ends.
    fn steer(&self, options: &[&str]) -> process::Outcome {
        let mut command = Command::new(&self.bench.command);
        command.arg("steer").arg(self.trace()).args(options);
        command.args(["--wait", "30"]);
        process::run(&mut command, TIMEOUT, &self.bench.path("steer"))
    }

    #[track_caller]
    fn steers(&self, options: &[&str], says: &str) {
        let outcome = self.steer(options).expect_success();
        assert_eq!(outcome.stdout.trim_end(), says, "{outcome}");
    }

    /// The program itself resumes its recording.
    fn resumes(&self) {
        let resume = self.bench.path("resume");
        fs::write(&resume, "").expect("a file");
        let begun = Instant::now();
        while resume.exists() {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
        self.goes_on();
    }

    /// Some more rounds pass.
    fn goes_on(&self) {
        std::thread::sleep(GOES_ON);
    }

    /// Lets the program end; returns what is in its trace.
    fn ends(mut self) -> Ended {
        fs::write(&self.file, "").expect("a file");
        assert!(self.program.wait().expect("a child").success());
        let path = self.bench.path("report.json");
        let outcome = self
            .bench
            .analyze(&self.trace(), 1, &path, &["--all", "-q"]);
        outcome.expect_orderly().expect_success();
        Ended {
            stderr: fs::read_to_string(self.bench.path("stderr")).expect("a file"),
            calls: self.bench.dump(&self.trace()),
            report: Report::parse(&fs::read_to_string(&path).expect("a report")).expect("a report"),
            running: self,
        }
    }
}

/// What is in the trace of a program that has ended.
struct Ended {
    running: Running,
    calls: String,
    report: Report,
    stderr: String,
}

impl Ended {
    /// What a rank was told, in order.
    fn changes(&self, rank: u32) -> Vec<&str> {
        let begin = format!("{rank}/0 ");
        let lines = self.calls.lines().filter(|line| line.starts_with(&begin));
        let changes = lines.filter_map(|line| Some(line.split_once("laggard_steer")?.1.trim()));
        changes.collect()
    }

    /// When it says so, and when its last call began, s.
    fn moments(&self, rank: u32) -> Vec<f64> {
        let begin = format!("{rank}/0 ");
        let lines = self.calls.lines().filter(|line| line.starts_with(&begin));
        let lines =
            lines.filter(|line| line.contains("laggard_steer") || line.contains("MPI_Finalize"));
        let times = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok());
        times.collect()
    }
}

#[test]
fn what_a_rank_is_told_is_in_its_trace() {
    let running = Running::new("steer-all", &[], |_| ());
    running.goes_on();
    running.steers(&[], "nothing was changed since the program was started");
    running.steers(&["--pause"], "ranks 0-2: paused");
    running.goes_on();
    running.steers(&["--resume"], "ranks 0-2: trace");
    running.goes_on();
    running.steers(
        &["--profile", "--rank", "1"],
        "rank 1: profile only\nranks 0, 2: trace",
    );
    running.steers(
        &["--depth", "1", "--rank", "1"],
        "rank 1: profile only, call paths of 1 at most\nranks 0, 2: trace",
    );
    running.steers(&["--as-started"], "ranks 0-2: as it was started");
    let ended = running.ends();
    assert_eq!(
        ended.changes(0),
        ["paused", "trace", "calls as it was started"]
    );
    assert_eq!(
        ended.changes(1),
        [
            "paused",
            "trace",
            "profile only",
            "call paths of 1 at most",
            "calls as it was started",
            "depth of call paths as it was started"
        ]
    );
    // They are no calls, between which a rank computes.
    let text = fs::read_to_string(ended.running.bench.path("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    for part in [
        "root_causes",
        "critical_path",
        "call_tree",
        "imbalance",
        "operations",
    ] {
        let said = report[part].to_string();
        assert!(!said.contains("laggard_steer"), "{part}: {said}");
    }
    let report = &ended.report;
    assert_eq!(report.anomaly("steered"), 3);
    assert_eq!(report.anomaly("paused"), 3);
    // All partners are found, whatever was left out.
    for unmatched in [
        "unmatched_send",
        "unmatched_receive",
        "incomplete_collective",
    ] {
        assert_eq!(report.anomaly(unmatched), 0, "{unmatched}");
    }
    assert_eq!(
        report.anomaly("steering_refused") + report.anomaly("not_steered"),
        0
    );
    assert_eq!(ended.stderr, "");
}

/// What is said last holds: the program resumes what the user paused, and the user pauses it again.
#[test]
fn a_pause_holds_after_the_program_resumed() {
    let running = Running::new("steer-again", &[], |_| ());
    running.steers(&["--pause"], "ranks 0-2: paused");
    running.goes_on();
    running.resumes();
    running.steers(&["--pause"], "ranks 0-2: paused");
    running.goes_on();
    let ended = running.ends();
    for rank in 0..RANKS {
        assert_eq!(ended.changes(rank), ["paused", "paused"]);
        let begin = format!("{rank}/0 ");
        let lines = ended.calls.lines().filter(|line| line.starts_with(&begin));
        // Stretches of barriers that are recorded, and of those that are not.
        let paused = lines.filter(|line| line.contains(" MPI_Barrier "));
        let mut paused: Vec<bool> = paused.map(|line| line.contains(" paused ")).collect();
        paused.dedup();
        assert!(
            paused.ends_with(&[true, false, true]),
            "rank {rank}: {paused:?}"
        );
    }
}

/// What is lost while recording is paused is nobody's: here rank 1 is late in every round.
#[test]
fn what_was_paused_is_not_judged() {
    let running = Running::new("steer-judged", &[("LAGGARD_PAUSED", "1")], |_| ());
    running.goes_on();
    running.goes_on();
    let judged = |running: Running| {
        let report = running.ends().report;
        let late = report.metrics.get("wait_at_barrier");
        late.map_or(0.0, |metric| metric.total_s)
    };
    assert_eq!(judged(running), 0.0);
    let running = Running::new("steer-judged", &[("LAGGARD_PAUSED", "1")], |_| ());
    running.steers(&["--resume"], "ranks 0-2: trace");
    running.goes_on();
    running.goes_on();
    assert!(judged(running) > 0.1);
}

#[test]
fn calls_are_left_out_by_name() {
    let running = Running::new("steer-names", &[], |_| ());
    running.steers(
        &["--leave-out", "MPI_Barrier,MPI_Bcast"],
        "ranks 0-2: without MPI_Barrier, without MPI_Bcast",
    );
    running.goes_on();
    running.steers(
        &["--take-in", "MPI_Barrier"],
        "ranks 0-2: without MPI_Bcast",
    );
    let why = running.steer(&["--leave-out", "MPI_Nothing"]);
    assert!(why.stderr.contains("no call is named MPI_Nothing"), "{why}");
    let why = running.steer(&["--pause", "--ranks", "2-3"]);
    assert!(
        why.stderr.contains("there is no rank 3: the run has 3"),
        "{why}"
    );
    let ended = running.ends();
    assert_eq!(
        ended.changes(2),
        [
            "without MPI_Barrier",
            "without MPI_Bcast",
            "with MPI_Barrier"
        ]
    );
    assert_eq!(ended.report.anomaly("incomplete_collective"), 0);
    let over = ended.running.steer(&["--pause"]);
    assert_eq!(over.code, Some(1), "{over}");
    assert!(over.stderr.contains("the program has ended"), "{over}");
}

/// The program waits in its first threads: what others have heard holds for all.
#[test]
fn any_thread_of_a_rank_hears_it() {
    let running = Running::scene(("thread", 2 * RANKS), "steer-thread", &[], |_| ());
    running.steers(&["--pause"], "ranks 0-2: paused");
    let file = running.trace().join("control");
    let file = fs::File::options().write(true).open(file).expect("it");
    for rank in 0..u64::from(RANKS) {
        let at = 4096 + 256 * rank;
        file.write_all_at(&[9; 64], at + 8).expect("written");
        file.write_all_at(&4u64.to_le_bytes(), at).expect("written");
    }
    running.goes_on();
    let ended = running.ends();
    let refused = "a change that makes no sense was refused";
    let lines = ended.calls.lines();
    let told = lines.filter(|line| line.contains("laggard_steer") && line.contains(refused));
    assert_eq!(told.count(), 2 * RANKS as usize, "all threads");
    // But one of them says so.
    let said = ended.stderr.matches("makes no sense").count();
    assert_eq!(said, RANKS as usize, "{}", ended.stderr);
}

/// Whatever else a rank does, it hears what it is told while it does it, and says when.
#[test]
fn ranks_hear_it_between_any_calls() {
    for scene in ["looks", "steps"] {
        for (mode, told) in [("trace", "1"), ("trace", "0"), ("profile", "0")] {
            let test = format!("steer-{scene}-{mode}-{told}");
            let env = [("LAGGARD_MODE", mode), ("LAGGARD_PROCESSOR_TIME", told)];
            let running = Running::scene((scene, RANKS), &test, &env, |_| ());
            running.steers(&["--pause"], "ranks 0-2: paused");
            running.goes_on();
            running.steers(&["--resume"], "ranks 0-2: trace");
            running.goes_on();
            let ended = running.ends();
            assert_eq!(ended.report.anomaly("steered"), 3, "{test}");
            // A profile alone has no records.
            if mode == "profile" {
                continue;
            }
            assert_eq!(ended.changes(1), ["paused", "trace"], "{test}");
            let [paused, resumed, end] = ended.moments(1)[..] else {
                panic!("{}", ended.calls);
            };
            let apart = 0.9 * GOES_ON.as_secs_f64();
            assert!(resumed - paused > apart, "{test}: {}", ended.calls);
            assert!(end - resumed > apart, "{test}: {}", ended.calls);
        }
    }
}

#[test]
fn ranks_that_share_a_file_hear_it() {
    let running = Running::new("steer-node", &[("LAGGARD_FILE_PER", "node")], |_| ());
    running.steers(&["--pause", "--rank", "2"], "rank 2: paused");
    let ended = running.ends();
    assert_eq!(ended.changes(2), ["paused"]);
    assert!(ended.changes(1).is_empty());
}

#[test]
fn samples_begin_and_end() {
    let running = Running::new("steer-samples", &[], |_| ());
    running.steers(&["--sample", "1000"], "ranks 0-2: 1000 samples per second");
    running.goes_on();
    running.goes_on();
    running.steers(&["--sample", "0"], "ranks 0-2: no samples");
    let ended = running.ends();
    assert_eq!(ended.changes(1), ["1000 samples per second", "no samples"]);
    assert_eq!(ended.report.anomaly("not_sampled"), 0);
}

/// Whatever stands where the block should be, the program runs, and its trace says why it was not steered.
#[test]
fn a_hostile_block_is_refused() {
    type Prepare = fn(&Path);
    let hostile: [(&str, Prepare, &str); 7] = [
        (
            "nonsense",
            |control| fs::write(control, [7; 9000]).expect("a file"),
            "no control block",
        ),
        (
            "empty",
            |control| fs::write(control, "").expect("a file"),
            "no control block",
        ),
        (
            "directory",
            |control| fs::create_dir(control).expect("it"),
            "no regular file",
        ),
        (
            "link",
            |control| symlink("/etc/passwd", control).expect("a link"),
            "no regular file",
        ),
        (
            "pipe",
            |control| {
                let made = Command::new("mkfifo").arg(control).status();
                assert!(made.expect("mkfifo").success());
            },
            "no regular file",
        ),
        (
            "open",
            |control| {
                fs::write(control, [0; 8192]).expect("a file");
                fs::set_permissions(control, fs::Permissions::from_mode(0o666)).expect("a mode");
            },
            "others may write it",
        ),
        (
            "foreign",
            |control| {
                fs::write(control, [0; 8192]).expect("a file");
                chown(control, Some(SOMEBODY), None).expect("an owner");
            },
            "it belongs to another user",
        ),
    ];
    // SAFETY: a plain system call.
    let can_give_away = unsafe { libc::geteuid() } == 0;
    if !can_give_away {
        eprintln!("SKIPPED: only root can give a block to another user");
    }
    let hostile = hostile.into_iter();
    for (name, prepare, why) in hostile.filter(|(name, ..)| *name != "foreign" || can_give_away) {
        let running = Running::new("steer-hostile", &[], |trace| {
            fs::create_dir_all(trace).expect("a directory");
            prepare(&trace.join("control"));
        });
        let refused = running.steer(&["--pause"]);
        assert_eq!(refused.code, Some(1), "{name}: {refused}");
        let ended = running.ends();
        assert_eq!(ended.report.anomaly("not_steered"), 3, "{name}");
        assert!(ended.stderr.contains(why), "{name}: {}", ended.stderr);
        assert!(ended.changes(0).is_empty(), "{name}");
    }
}

#[test]
fn a_block_that_breaks_changes_nothing() {
    let running = Running::new("steer-breaks", &[], |_| ());
    let control = running.trace().join("control");
    // A number, and no wish that belongs to it.
    let file = fs::File::options().write(true).open(&control).expect("it");
    file.write_all_at(&[9; 64], 4096 + 256 + 8)
        .expect("written");
    file.write_all_at(&2u64.to_le_bytes(), 4096 + 256)
        .expect("written");
    running.goes_on();
    file.set_len(0).expect("cut off");
    running.goes_on();
    let why = running.steer(&["--pause"]);
    assert!(why.stderr.contains("no control block"), "{why}");
    let ended = running.ends();
    let refused = "a change that makes no sense was refused";
    assert!(ended.changes(1).contains(&refused));
    assert_eq!(ended.report.anomaly("steering_refused"), 3);
    assert_eq!(ended.report.anomaly("paused"), 0);
}

/// The status of a request, and the answer.
fn post(address: &str, lines: &str, body: &str) -> (u16, String) {
    let rest = address.strip_prefix("http://").expect("an address");
    let (authority, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(authority).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let length = body.len();
    let text = format!(
        "POST /{path}steer HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Length: {length}\r\n{}\r\n{body}",
        lines.replace("HERE", authority)
    );
    stream.write_all(text.as_bytes()).expect("it listens");
    let mut bytes = Vec::new();
    // A server may close at once what it does not want.
    let _ = stream.read_to_end(&mut bytes);
    let answer = String::from_utf8_lossy(&bytes).into_owned();
    (status(&answer), answer)
}

const OWN: &str = "Origin: http://HERE\r\nContent-Type: application/json\r\n";

#[test]
fn the_page_steers_where_the_user_allows_it() {
    let running = Running::new("steer-page", &[], |_| ());
    let (mut reader, address) = start(&running.bench, &["-q", "--follow"]);
    let pause = r#"{"detail": "paused", "ranks": [[1, 1]]}"#;
    assert_eq!(post(&address, OWN, pause).0, 404);
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(reader.id() as i32, libc::SIGINT) };
    reader.wait().expect("a child");
    let (mut server, address) = start(&running.bench, &["-q", "--follow", "--steer"]);
    for lines in [
        "Content-Type: application/json\r\n",
        "Origin: http://HERE\r\nContent-Type: text/plain\r\n",
        "Origin: https://example.org\r\nContent-Type: application/json\r\n",
        "Origin: null\r\nContent-Type: application/json\r\n",
    ] {
        assert_eq!(post(&address, lines, pause).0, 403, "{lines}");
    }
    let stranger = address.replace(address.rsplit('/').nth(1).expect("a token"), "0");
    assert_eq!(post(&stranger, OWN, pause).0, 404);
    for nonsense in [
        "",
        "{",
        r#"{"file": "x"}"#,
        r#"{"depth": 300}"#,
        r#"{"depth": 255}"#,
        r#"{"sample_hz": 60000}"#,
        r#"{"ranks": [[0, 9]]}"#,
        r#"{"ranks": [[2, 0]]}"#,
        r#"{"leave_out": ["omp_barrier"]}"#,
    ] {
        let (code, answer) = post(&address, OWN, nonsense);
        assert_eq!(code, 400, "{answer}");
    }
    let huge = format!(r#"{{"leave_out": ["{}"]}}"#, "x".repeat(20_000));
    assert_eq!(post(&address, OWN, &huge).0, 413);
    let (code, answer) = post(&address, OWN, pause);
    assert_eq!(code, 200, "{answer}");
    assert!(answer.ends_with(r#"{"ranks":1}"#), "{answer}");
    let mut client = client(&address);
    let begun = Instant::now();
    loop {
        let heard: Value = serde_json::from_str(&hear(&mut client)).expect("JSON");
        let news = &heard["news"];
        assert_eq!(news["steers"], true);
        let row = &news["wanted"][0];
        if row["ranks"] == "rank 1" && row["wish"] == "paused" && row["unheard"] == "" {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{heard}");
    }
    let mut browser = Browser::start(&running.bench.dir);
    browser.visit(&address);
    settle_on(
        &mut browser,
        "document.getElementById('steer').hidden === false",
    );
    // The field is checked while it is filled in.
    let ranks = "document.getElementById('steer').elements.ranks";
    for (text, is_valid) in [("0; 2", false), ("0-1, 2", true)] {
        browser.value(&format!("{ranks}.value = ''; {ranks}.focus()"));
        browser.write(text);
        assert_eq!(browser.value(&format!("{ranks}.checkValidity()")), is_valid);
    }
    assert_eq!(browser.complaints(), [""; 0]);
    browser.value(
        "(() => {
            const form = document.getElementById('steer');
            form.elements.ranks.value = '0, 2';
            form.elements.detail.value = 'profile';
            form.elements.leave.value = 'MPI_Barrier';
            form.requestSubmit();
        })()",
    );
    settle_on(
        &mut browser,
        "document.getElementById('steered').dataset.state === 'done'",
    );
    settle_on(
        &mut browser,
        "document.getElementById('wanted').textContent.includes('profile only, without MPI_Barrier')",
    );
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("steer.png"), browser.picture(1200)).expect("a picture");
    browser.value(
        "(() => {
            const form = document.getElementById('steer');
            form.elements.leave.value = 'MPI_Nothing';
            form.requestSubmit();
        })()",
    );
    settle_on(
        &mut browser,
        "document.getElementById('steered').textContent.includes('no call is named MPI_Nothing')",
    );
    drop(browser);
    // SAFETY: as above.
    unsafe { libc::kill(server.id() as i32, libc::SIGINT) };
    server.wait().expect("a child");
    let ended = running.ends();
    assert_eq!(ended.changes(1), ["paused"]);
    assert_eq!(ended.changes(0), ["profile only", "without MPI_Barrier"]);
}
