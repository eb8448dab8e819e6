//! Kills recorded programs and analyses at any moment. Records up to then can be analysed, and a
//! former report stays.
//!
//! `LAGGARD_TEST_KILLS` says how often each test kills (20 and 8 if unset).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use laggard_tests::mpi::Mpi;
use laggard_tests::product::{Bench, difference, mpirun};
use laggard_tests::report::Report;
use laggard_trace::calls::number;
use laggard_trace::{Decoder, FILE_EXTENSION, Location};

const RANKS: u32 = 3;
/// Duration of the recorded program's messages, milliseconds.
const RUN_MS: u64 = 250;
/// Time within which a killed job must end.
const PATIENCE: Duration = Duration::from_secs(60);

fn kills(usual: usize) -> usize {
    let asked = std::env::var("LAGGARD_TEST_KILLS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Random numbers that differ from run to run; failures print them.
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

/// A running job: its launcher, and its output files.
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

    /// Processes that run `program`, in order of their ids: children of the launcher, or of its
    /// process on each host.
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
        // Each agent has a watcher, a process of the same program.
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

    /// Waits until `count` processes run `program`, or the job has ended.
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

    /// Ends the launcher and its processes, which are in groups of their own.
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

    /// Its exit status and output, after waiting for its end.
    #[track_caller]
    fn end(mut self, program: &Path) -> (ExitStatus, String, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.launcher.try_wait().expect("a status") {
                break status;
            }
            if Instant::now() > deadline {
                // Open MPI's launcher sometimes stays, even without the collector, when a process
                // dies while it connects. Its processes may not.
                let left = self.processes(program);
                let doing = left.iter().map(|pid| doing(*pid));
                let doing: Vec<String> = doing.collect();
                self.give_up();
                let said = fs::read_to_string(self.log.with_extension("err"));
                assert!(left.is_empty(), "did not end: {doing:#?}\n{said:?}");
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

/// What is known of a process that should have ended.
fn doing(pid: i32) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let status = read("status");
    let state = status.lines().find(|line| line.starts_with("State:"));
    let waits = read("wchan");
    format!("{pid} {} in {waits}", state.unwrap_or("gone"))
}

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

/// How and when to kill a job.
#[derive(Debug)]
struct Plan {
    /// Whether the time counts from the ranks' first call, instead of their start.
    runs: bool,
    after: Duration,
    /// One process, or all.
    victim: Option<usize>,
}

/// Every returned call is in the trace, and the trace can be analysed.
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
    // Time from the first process to the last.
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
        // MPI's start takes longest; some moments are after the loop, in Finalize.
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

/// Compares a killed job's trace with its ranks' own counts, and analyses it. Returns the number of
/// calls in it.
fn check(bench: &Bench, name: &str) -> Result<u64, String> {
    let trace = bench.path(name);
    let (mut calls, mut present) = (0, 0);
    for path in locations(&trace) {
        // Created but not yet written: the header comes first.
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
        present += 1;
        let rank = location.header.rank;
        let counted = fs::read(bench.path(&format!("{name}-returned-{rank}")));
        let counted = counted
            .ok()
            .and_then(|bytes| Some(*bytes.first_chunk::<8>()?));
        let counted = counted.map_or(0, u64::from_le_bytes);
        let found = recorded(&location);
        // One call may have returned before it was counted.
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
    // Some ranks may record when others have not begun to.
    let missing = report.anomaly("missing_ranks") == u64::from(RANKS) - present;
    let errors = report.anomalies.iter().filter(|a| a.severity == "error");
    let others = errors.filter(|a| a.id != "missing_ranks").count();
    // A rank that waits for a killed one is not in a deadlock with it.
    match missing && others == 0 && report.anomaly("deadlock") == 0 {
        true => Ok(calls),
        false => Err(format!("{present} of {RANKS}: {:#?}", report.anomalies)),
    }
}

/// Calls that are meant for the profile alone are in it after a kill, all but the last ones.
#[test]
fn what_is_meant_for_the_profile_outlives_a_kill() {
    const WHILE: Duration = Duration::from_millis(300);
    let bench = Bench::beside("kill-profiles");
    let program = bench.compile("attacks/killed.c", &[], &[]);
    let program = program.canonicalize().expect("a path");
    for (name, setting, steered) in [
        ("mode", ("LAGGARD_MODE", "profile"), false),
        ("limit", ("LAGGARD_MAX_TRACE_MB", "1"), false),
        ("steered", ("LAGGARD_MODE", "trace"), true),
    ] {
        let prefix = bench.path(&format!("{name}-returned-"));
        let words = [program.as_os_str(), OsStr::new("100"), prefix.as_os_str()];
        let run = bench.traced(RANKS, &words, name).env(setting.0, setting.1);
        let mut job = Job::start(run.command(), bench.path(name));
        let ranks = job.wait_for(&program, RANKS as usize);
        let returned = || -> Option<u64> {
            let counters = (0..RANKS).map(|rank| bench.path(&format!("{name}-returned-{rank}")));
            let counts = counters.map(|path| Some(*fs::read(path).ok()?.first_chunk::<8>()?));
            counts.map(|count| count.map(u64::from_le_bytes)).sum()
        };
        while returned().is_none() {
            assert!(job.started.elapsed() < PATIENCE, "no rank runs");
            std::thread::sleep(Duration::from_millis(1));
        }
        if steered {
            let mut steer = Command::new(&bench.command);
            let steer = steer.arg("steer").arg(bench.path(name)).arg("--profile");
            let steered = steer.args(["--wait", "30"]).output().expect("it");
            assert!(steered.status.success(), "{steered:?}");
        }
        std::thread::sleep(WHILE);
        let before = returned().expect("counters");
        std::thread::sleep(WHILE);
        ranks.iter().for_each(|&pid| kill(pid));
        job.end(&program);
        let after = returned().expect("counters");
        let report = bench.path("report.json");
        let outcome = bench.analyze(&bench.path(name), 1, &report, &["--all", "-q"]);
        outcome.expect_orderly().expect_success();
        let text = fs::read_to_string(&report).expect("a report");
        let report = Report::parse(&text).expect("a report of the promised shape");
        let counted = ["MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce"];
        let calls = |names: &[&str]| -> u64 {
            let operations = report.operations.iter();
            let operations = operations.filter(|one| names.contains(&one.operation.as_str()));
            operations.map(|one| one.calls).sum()
        };
        let found = calls(&counted);
        assert!(after > before, "{name}: {before} {after}");
        // One call of each rank may have returned before it was counted.
        let expected = before..=after + u64::from(RANKS);
        assert!(expected.contains(&found), "{name}: {found} of {expected:?}");
        // One of four calls, and matched with none.
        let looks = calls(&["MPI_Iprobe"]);
        assert!(looks > before / 4, "{name}: {looks} of {before}");
    }
}

/// A trace that takes agents a while to analyse.
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

/// The job ends soon. The former report is whole, or the new one is there, which says the same.
#[test]
fn agents_are_killed_at_any_moment() {
    const AGENTS: u32 = 3;
    let bench = Bench::beside("kill-agents");
    let trace = long_trace(&bench, "0.5");
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
        // The first one is killed early: the job that was measured may have been slower than these.
        let after = Duration::from_micros(random.below(length) * n as u64 / kills(8) as u64);
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
        // At least the launcher prints it: Open MPI's on stderr, MPICH's on stdout.
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

/// Whether a process has a child that has not ended.
fn is_watched(pid: &i32) -> bool {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().any(|child| {
        let status = fs::read_to_string(format!("/proc/{child}/status"));
        status.is_ok_and(|status| !status.contains("State:\tZ"))
    })
}

/// A stopped agent ends the job with a line that names it, and the former report stays. If it goes
/// on in time, or without a limit, the job goes on.
#[test]
fn an_agent_is_stopped() {
    let bench = Bench::beside("stopped-agent");
    let trace = long_trace(&bench, "0.5");
    let report = bench.path("report.json");
    let start = |limit: &str| {
        let mut command = mpirun(2);
        command.arg(&bench.command).arg("analyze").arg(&trace);
        command.arg("-o").arg(&report).args(["--all", "-q"]);
        command.args(["--stall-limit", limit]);
        let mut job = Job::start(command, bench.path("stopped"));
        let agents = job.wait_for(&bench.command, 2);
        // Almost from the start of `main` on.
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
        // Without a limit the job waits, even longer than the other limit.
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
        std::thread::sleep(Duration::from_millis(100));
        if after_ms > 0 && !is_watched(&agents[victim]) {
            // It was about to end.
            signal(agents[victim], libc::SIGCONT);
        }
        let (status, _, said) = job.end(&bench.command);
        if status.success() && after_ms > 0 {
            // The job ended before.
            assert!(said.is_empty(), "{said}");
            continue;
        }
        assert!(!status.success(), "{said}");
        // The head may print that it was ended because of the other agent.
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

/// A trace shortened while it is mapped: one line names the file; no core dump, no report.
#[test]
fn a_file_is_shortened_while_it_is_analysed() {
    let bench = Bench::beside("shortened");
    let trace = long_trace(&bench, "0.5");
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
        // The search for its file may be scheduled too late, after the analysis.
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
        // MPICH's launcher may tell of an agent that it ended itself.
        let is_ended = bench.mpi == Mpi::Mpich && status.code() == Some(libc::SIGKILL);
        assert!(status.code() == Some(1) || is_ended, "{status} {said}");
        // The head may print that it was ended because of the other agent.
        assert!(
            naming.len() == 1 && others.len() < agents as usize,
            "{said}"
        );
        assert!(agents > 1 || said.lines().count() == 1, "{said}");
        assert!(!report.exists(), "a report of half a trace");
    }
}

/// Stops the process of the job that has just mapped a file; returns its id, or `None` if the job
/// ended before.
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

/// If the new report cannot be written, the former one stays, and nothing else.
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

/// An unreadable directory is one line.
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
