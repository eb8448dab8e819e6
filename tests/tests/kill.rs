//! Recorded programs and analyses that are killed at any moment: what was written before can be
//! analysed, and a former report stays.
//!
//! `LAGGARD_TEST_KILLS` says how often each test kills (20 and 8 if unset).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use laggard_tests::product::{Bench, difference, mpirun};
use laggard_tests::report::Report;
use laggard_trace::calls::number;
use laggard_trace::{Decoder, FILE_EXTENSION, Location};

/// Ranks of the recorded program.
const RANKS: u32 = 3;
/// How long the recorded program passes messages for, milliseconds.
const RUN_MS: u64 = 250;
/// Until a killed job must have ended.
const PATIENCE: Duration = Duration::from_secs(20);

fn kills(usual: usize) -> usize {
    let asked = std::env::var("LAGGARD_TEST_KILLS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Numbers that differ from run to run; what they were is in a failure's message.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Random(now.map_or(1, |now| now.as_nanos() as u64) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}

/// A job under way: its launcher, and where its output goes.
struct Job {
    launcher: Child,
    started: Instant,
    log: PathBuf,
}

impl Job {
    fn start(mut command: Command, log: PathBuf) -> Job {
        let output = |name| File::create(log.with_extension(name)).expect("a file");
        command
            .stdin(Stdio::null())
            .stdout(output("out"))
            .stderr(output("err"))
            .process_group(0);
        Job {
            launcher: command.spawn().expect("mpirun"),
            started: Instant::now(),
            log,
        }
    }

    /// Processes that the launcher started, or a process that it has on each host, and that run
    /// `program`, in order of their ids.
    fn processes(&self, program: &Path) -> Vec<i32> {
        let launcher = self.launcher.id() as i32;
        let ids = fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.to_str()?.parse::<i32>().ok()
        });
        let runs = |pid: &i32| {
            let executable = fs::read_link(format!("/proc/{pid}/exe"));
            executable.is_ok_and(|executable| executable == program)
        };
        // Each agent has a process of the same program that watches it.
        let is_watcher = |pid: &i32| parent(*pid).is_some_and(|parent| runs(&parent));
        let started = |pid: &i32| {
            let parent = parent(*pid);
            parent == Some(launcher) || parent.and_then(self::parent) == Some(launcher)
        };
        let mut found: Vec<i32> = ids
            .filter(runs)
            .filter(started)
            .filter(|pid| !is_watcher(pid))
            .collect();
        found.sort();
        found
    }

    /// Waits until so many processes run `program`, or the job has ended.
    fn wait_for(&mut self, program: &Path, count: usize) -> Vec<i32> {
        loop {
            let found = self.processes(program);
            let ended = self.launcher.try_wait().expect("a status").is_some();
            if found.len() == count || ended {
                return found;
            }
            assert!(self.started.elapsed() < PATIENCE, "{found:?} only");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the launcher and what it started, which is in groups of their own.
    fn give_up(&mut self) {
        let id = self.launcher.id() as libc::pid_t;
        // SAFETY: plain system calls; the group is the child's, not yet reaped.
        unsafe { libc::kill(-id, libc::SIGTERM) };
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.launcher.try_wait().expect("a status").is_none() {
            if Instant::now() > deadline {
                // SAFETY: as above.
                unsafe { libc::kill(-id, libc::SIGKILL) };
                let _ = self.launcher.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// How it ended, what it said, and how long it took since it was killed.
    #[track_caller]
    fn end(mut self, program: &Path) -> (ExitStatus, String, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.launcher.try_wait().expect("a status") {
                break status;
            }
            if Instant::now() > deadline {
                // Open MPI's launcher sometimes stays, with or without us, when a process dies
                // while it connects. Its processes may not.
                let left = self.processes(program);
                self.give_up();
                assert!(left.is_empty(), "processes that did not end: {left:?}");
                eprintln!("the launcher stayed when all its processes had ended");
                break self.launcher.wait().expect("a status");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let read = |name| {
            let bytes = fs::read(self.log.with_extension(name)).expect("its output");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (status, read("out"), read("err"))
    }
}

/// The process that started a process.
fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    parent.trim().parse().ok()
}

fn kill(pid: i32) {
    // SAFETY: plain system call on a process that this test's job started.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

fn locations(trace: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(trace).into_iter().flatten();
    let paths = files.map(|file| file.expect("an entry").path());
    let extension = Some(OsStr::new(FILE_EXTENSION));
    paths.filter(|path| path.extension() == extension).collect()
}

/// Calls of the program's loop in a location's file.
fn recorded(location: &Location) -> u64 {
    let counted = [
        number::MPI_Irecv,
        number::MPI_Isend,
        number::MPI_Waitall,
        number::MPI_Allreduce,
    ];
    let signatures = location.definitions.signatures();
    let mut calls = 0;
    for chunk in &location.chunks {
        assert!(location.verify(chunk), "a spoiled chunk");
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            let signature = signatures.get(event.signature as usize);
            let operation = signature.expect("a signature that was defined").operation;
            calls += u64::from(counted.contains(&operation));
        }
    }
    calls
}

/// What is to be done to a job, and when.
#[derive(Debug)]
struct Plan {
    /// Whether the time counts from the ranks' first call, and not from their start.
    runs: bool,
    after: Duration,
    /// One of them, or all.
    victim: Option<usize>,
}

/// Every call that had returned is in the trace, and it can be analysed.
#[test]
fn ranks_are_killed_at_any_moment() {
    let bench = Bench::beside("kill-ranks");
    let program = bench.compile("attacks/killed.c", &[], &[]);
    let program = program.canonicalize().expect("a path");
    let seconds = format!("{}", RUN_MS as f64 / 1e3);
    let run = |name: &str| {
        let seconds: &OsStr = seconds.as_ref();
        let counters = bench.path(&format!("{name}-returned-"));
        let words = [program.as_os_str(), seconds, counters.as_os_str()];
        let command = bench.traced(RANKS, &words, name).command();
        Job::start(command, bench.path(name))
    };
    // How long it takes from the first process to the last.
    let mut whole = run("whole");
    whole.wait_for(&program, RANKS as usize);
    let began = Instant::now();
    let (status, _, said) = whole.end(&program);
    assert!(status.success() && said.is_empty(), "{said}");
    let length = began.elapsed().as_micros() as u64;

    let mut random = Random::new();
    let (mut empty, mut calls) = (0, 0);
    for n in 0..kills(20) {
        let runs = random.below(5) > 0;
        // Starting takes MPI the longest; some moments are after the loop, in Finalize.
        let longest = if runs { RUN_MS * 1200 } else { length };
        let plan = Plan {
            runs,
            after: Duration::from_micros(random.below(longest)),
            victim: (random.below(4) > 0).then(|| random.below(RANKS.into()) as usize),
        };
        let name = format!("killed-{n}");
        let mut job = run(&name);
        let ranks = job.wait_for(&program, RANKS as usize);
        let counters = (0..RANKS).map(|rank| bench.path(&format!("{name}-returned-{rank}")));
        let counters: Vec<_> = counters.collect();
        while plan.runs && !counters.iter().all(|path| path.exists()) {
            assert!(job.started.elapsed() < PATIENCE, "no rank runs");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(plan.after);
        match plan.victim {
            Some(victim) => ranks.get(victim).into_iter().for_each(|&pid| kill(pid)),
            None => ranks.iter().for_each(|&pid| kill(pid)),
        }
        job.end(&program);
        match check(&bench, &name) {
            Ok(0) => empty += 1,
            Ok(found) => calls += found,
            Err(wrong) => panic!("{plan:?} of {length} µs: {wrong}"),
        }
        let _ = fs::remove_dir_all(bench.path(&name));
    }
    eprintln!(
        "{} killed, {empty} before the first call; {calls} calls",
        kills(20)
    );
    assert!(calls > 0, "no job was killed while it recorded");
}

/// Compares a killed job's trace with what its ranks counted, and analyses it. The number of
/// calls that are in it.
fn check(bench: &Bench, name: &str) -> Result<u64, String> {
    let trace = bench.path(name);
    let mut calls = 0;
    for path in locations(&trace) {
        // Made, and not yet written to: the header is the first that is.
        let length = fs::metadata(&path).expect("a file").len();
        let location = match Location::open(&path) {
            Ok(location) => location,
            Err(error) => {
                let untouched = fs::read(&path)
                    .expect("a file")
                    .iter()
                    .all(|&byte| byte == 0);
                if untouched || length == 0 {
                    continue;
                }
                return Err(error.to_string());
            }
        };
        let rank = location.header.rank;
        let counted = fs::read(bench.path(&format!("{name}-returned-{rank}")));
        let counted = counted
            .ok()
            .and_then(|bytes| Some(*bytes.first_chunk::<8>()?));
        let counted = counted.map_or(0, u64::from_le_bytes);
        let found = recorded(&location);
        // One call may have returned that was not yet counted.
        if found != counted && found != counted + 1 {
            return Err(format!(
                "rank {rank}: {counted} calls returned, {found} recorded"
            ));
        }
        calls += found;
    }
    let report = bench.path("report.json");
    let _ = fs::remove_file(&report);
    let outcome = bench
        .analyze(&trace, 1, &report, &["--all", "-q"])
        .expect_orderly();
    if outcome.code == Some(1) && calls == 0 && outcome.stderr.lines().count() == 1 {
        return Ok(0);
    }
    if !outcome.success() {
        return Err(outcome.to_string());
    }
    let text = fs::read_to_string(&report).expect("a report");
    let report = Report::parse(&text).expect("a report of the promised shape");
    // Who waits for a rank that was killed is not in a circle with it.
    match report.errors().is_empty() && report.anomaly("deadlock") == 0 {
        true => Ok(calls),
        false => Err(format!("{:#?}", report.anomalies)),
    }
}

/// A trace that takes agents a while.
fn long_trace(bench: &Bench, seconds: &str) -> PathBuf {
    let program = bench.compile("attacks/killed.c", &[], &[]);
    let counters = bench.path("returned-");
    let words = [
        program.as_os_str(),
        OsStr::new(seconds),
        counters.as_os_str(),
    ];
    let outcome = bench.traced(RANKS, &words, "trace").run();
    outcome.expect_orderly().expect_success();
    bench.path("trace")
}

/// The job ends soon, and the former report is there, whole; or the new one, which says the same.
#[test]
fn agents_are_killed_at_any_moment() {
    const AGENTS: u32 = 3;
    let bench = Bench::beside("kill-agents");
    let trace = long_trace(&bench, "1.5");
    let report = bench.path("report.json");
    let start = |n: usize| {
        let mut command = mpirun(AGENTS);
        command.arg(&bench.command).arg("analyze").arg(&trace);
        command.arg("-o").arg(&report).args(["--all", "-q"]);
        Job::start(command, bench.path(&format!("analysis-{n}")))
    };
    let mut whole = start(0);
    whole.wait_for(&bench.command, AGENTS as usize);
    let began = Instant::now();
    let (status, _, said) = whole.end(&bench.command);
    assert!(status.success() && said.is_empty(), "{said}");
    let length = began.elapsed().as_micros() as u64;
    let former = fs::read_to_string(&report).expect("a report");

    let mut random = Random::new();
    let mut ended = 0;
    for n in 1..=kills(8) {
        let after = Duration::from_micros(random.below(length));
        let victim = random.below(AGENTS.into()) as usize;
        let mut job = start(n);
        let agents = job.wait_for(&bench.command, AGENTS as usize);
        std::thread::sleep(after);
        agents.get(victim).into_iter().for_each(|&pid| kill(pid));
        let killed = Instant::now();
        let (status, printed, said) = job.end(&bench.command);
        let how = format!(
            "agent {victim} of {AGENTS}, {after:?} of {length} µs; {status}, {:?} later\n{printed}{said}",
            killed.elapsed()
        );
        let now = fs::read_to_string(&report).expect("a report");
        if let Some(difference) = difference(&former, &now) {
            panic!("{how}: another report: {difference}");
        }
        if status.success() {
            continue;
        }
        ended += 1;
        assert!(!said.contains("panicked"), "{how}");
        let lines = said.lines().filter(|line| line.starts_with("laggard: "));
        assert!(lines.count() <= 1, "{how}");
        // By the launcher, at least: Open MPI's says it there, MPICH's where programs print.
        let spoken = [&said, &printed].iter().any(|text| !text.trim().is_empty());
        assert!(spoken, "{how}: nothing said");
        eprintln!("{how}");
    }
    eprintln!(
        "{ended} of {} analyses were killed before their end",
        kills(8)
    );
    assert!(ended > 0, "no analysis was killed before its end");
}

/// An agent that is stopped, wherever it is, ends the job with a line that names it; the former
/// report stays. Who goes on in time, or may take for ever, ends nothing.
#[test]
fn an_agent_is_stopped() {
    let bench = Bench::beside("stopped-agent");
    let trace = long_trace(&bench, "1.5");
    let report = bench.path("report.json");
    let start = |limit: &str| {
        let mut command = mpirun(2);
        command.arg(&bench.command).arg("analyze").arg(&trace);
        command.arg("-o").arg(&report).args(["--all", "-q"]);
        command.args(["--stall-limit", limit]);
        let mut job = Job::start(command, bench.path("stopped"));
        let agents = job.wait_for(&bench.command, 2);
        // From the start of `main` on, nearly.
        let is_watched = |pid: &i32| {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            children.is_ok_and(|children| !children.trim().is_empty())
        };
        while limit != "0" && !agents.iter().all(is_watched) {
            assert!(job.started.elapsed() < PATIENCE, "nobody watches");
            std::thread::sleep(Duration::from_millis(1));
        }
        (job, agents)
    };
    let signal = |pid: i32, signal| {
        // SAFETY: plain system call on a process of this test's job.
        unsafe { libc::kill(pid, signal) };
    };
    let mut former = None;
    for limit in ["2", "0"] {
        let (job, agents) = start(limit);
        signal(agents[1], libc::SIGSTOP);
        // Without a limit the job waits, for longer than the other limit, too.
        let pause = Duration::from_secs(if limit == "0" { 4 } else { 0 });
        std::thread::sleep(pause);
        signal(agents[1], libc::SIGCONT);
        let (status, _, said) = job.end(&bench.command);
        assert!(status.success() && said.is_empty(), "{said}");
        let now = fs::read_to_string(&report).expect("a report");
        let former = former.get_or_insert(now.clone());
        assert!(difference(former, &now).is_none(), "another report");
    }
    let former = former.expect("a report");
    for (victim, after_ms) in [(0, 0), (1, 0), (0, 400), (1, 400)] {
        let (job, agents) = start("2");
        std::thread::sleep(Duration::from_millis(after_ms));
        signal(agents[victim], libc::SIGSTOP);
        let (status, _, said) = job.end(&bench.command);
        if status.success() && after_ms > 0 {
            // It was over before.
            assert!(said.is_empty(), "{said}");
            continue;
        }
        assert!(!status.success(), "{said}");
        // The head may say that it was ended because of the other agent.
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with("laggard: "))
            .collect();
        let (naming, others): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| {
            line.contains(&format!("process {} on ", agents[victim]))
                && line.contains(" was stopped for 2 s")
        });
        assert!(naming.len() == 1 && others.len() <= 1, "{said}");
        let now = fs::read_to_string(&report).expect("a report");
        assert!(
            former == now || difference(&former, &now).is_none(),
            "{said}"
        );
    }
}

/// Shortened while it is mapped: one line that names the file, no core dump, no report.
#[test]
fn a_file_is_shortened_while_it_is_analysed() {
    let bench = Bench::beside("shortened");
    let trace = long_trace(&bench, "1.5");
    let mut files = locations(&trace);
    files.sort();
    let report = bench.path("report.json");
    for agents in [1, 2] {
        let copy = bench.path(&format!("copy-{agents}"));
        fs::create_dir(&copy).expect("a directory");
        for file in &files {
            fs::copy(file, copy.join(file.file_name().expect("a name"))).expect("copied");
        }
        let last = copy.join(files[files.len() - 1].file_name().expect("a name"));
        // Who looks for its file may not be scheduled before the analysis is through.
        let started = (0..10).find_map(|_| {
            let mut command = match agents {
                1 => Command::new(&bench.command),
                n => {
                    let mut command = mpirun(n);
                    command.arg(&bench.command);
                    command
                }
            };
            command
                .arg("analyze")
                .arg(&copy)
                .arg("-o")
                .arg(&report)
                .args(["--all", "-q"]);
            let mut job = Job::start(command, bench.path("shortened"));
            let reader = stop_while_mapped(&mut job, agents, &bench.command, &last);
            if reader.is_none() {
                fs::remove_file(&report).expect("a report");
            }
            reader.map(|reader| (job, reader))
        });
        let (job, reader) = started.expect("it is seen to read");
        let shortened = fs::OpenOptions::new().write(true).open(&last);
        shortened
            .and_then(|file| file.set_len(4096))
            .expect("shortened");
        // SAFETY: plain system call on a process of this test's job.
        unsafe { libc::kill(reader, libc::SIGCONT) };
        let (status, _, said) = job.end(&bench.command);
        let lines = said.lines().filter(|line| line.starts_with("laggard: "));
        let name = last.to_string_lossy();
        let (naming, others): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains(&*name));
        assert_eq!(status.code(), Some(1), "{said}");
        // The head may say that it was ended because of the other agent.
        assert!(
            naming.len() == 1 && others.len() < agents as usize,
            "{said}"
        );
        assert!(agents > 1 || said.lines().count() == 1, "{said}");
        assert!(!report.exists(), "a report of half a trace");
    }
}

/// Stops the process of the job that has just mapped a file; gives its id, unless the job ended
/// before it was seen to read.
fn stop_while_mapped(job: &mut Job, agents: u32, program: &Path, file: &Path) -> Option<i32> {
    let name = file.to_str().expect("a path that is text");
    loop {
        let processes = match agents {
            1 => vec![job.launcher.id() as i32],
            _ => job.processes(program),
        };
        for pid in processes {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            if maps.contains(name) {
                // SAFETY: plain system call on a process of this test's job.
                unsafe { libc::kill(pid, libc::SIGSTOP) };
                return Some(pid);
            }
        }
        if job.launcher.try_wait().expect("a status").is_some() {
            return None;
        }
    }
}

/// The former report stays where the new one cannot be written, and nothing else.
#[test]
fn a_report_on_a_full_disk() {
    let bench = Bench::beside("full-disk-report");
    let trace = long_trace(&bench, "0.1");
    let refused = |report: &Path, agents: u32| {
        let outcome = bench
            .analyze(&trace, agents, report, &["-q"])
            .expect_orderly();
        assert_eq!(outcome.code, Some(1), "{outcome}");
        let lines = outcome
            .stderr
            .lines()
            .filter(|line| line.starts_with("laggard: "));
        assert_eq!(lines.count(), 1, "{outcome}");
        assert!(outcome.stderr.contains("No space left"), "{outcome}");
        assert!(
            agents > 1 || outcome.stderr.lines().count() == 1,
            "{outcome}"
        );
    };
    refused(Path::new("/dev/full"), 1);
    let disk = bench.path("disk");
    fs::create_dir(&disk).expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("no small disk can be mounted here");
        return;
    }
    let report = disk.join("report.json");
    let written = bench.analyze(&trace, 1, &report, &["-q"]);
    let former = fs::read(&report);
    let filled = fs::write(disk.join("filler"), vec![1u8; 1 << 20]);
    let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        [1, 2]
            .into_iter()
            .for_each(|agents| refused(&report, agents));
        let names = fs::read_dir(&disk).expect("the disk");
        (fs::read(&report), names.count())
    }));
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    written.expect_success();
    assert!(filled.is_err(), "the disk is not full");
    let (now, names) = left.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert_eq!(now.expect("a report"), former.expect("a report"));
    assert_eq!(names, 2, "something else was left");
}

/// A directory that the user may not look into is one line.
#[test]
fn a_directory_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    const NOBODY: u32 = 65534;
    let bench = Bench::beside("unreadable");
    let trace = long_trace(&bench, "0.1");
    // SAFETY: never fails.
    let is_root = unsafe { libc::geteuid() } == 0;
    let run = |words: &[&OsStr]| {
        let mut command = Command::new(&bench.command);
        command.args(words).current_dir("/");
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let timeout = Duration::from_secs(20);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            laggard_tests::process::run(&mut command, timeout, &bench.path("unreadable"))
        }))
    };
    if !run(&["--version".as_ref()]).is_ok_and(|outcome| outcome.success()) {
        eprintln!("the command cannot be run as another user here");
        return;
    }
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("other permissions");
    };
    set(&trace, 0o000);
    for command in ["analyze", "info", "dump"] {
        let outcome = run(&[command.as_ref(), trace.as_os_str()]).expect("started");
        let outcome = outcome.expect_orderly();
        assert_eq!(outcome.code, Some(1), "{outcome}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
        assert!(outcome.stderr.contains("Permission denied"), "{outcome}");
    }
    set(&trace, 0o755);
}
