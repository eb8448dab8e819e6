//! The collector, the command, compilers and `mpirun`.

pub use crate::folders::scratch;
pub use crate::report::difference;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use laggard_engine::AnalyzeOptions;

use crate::agents;
use crate::attempts::{self, Watch};
use crate::folders::target;
use crate::hosts::Hosts;
use crate::mpi::{self, Mpi};
use crate::process::{self, Outcome};

/// Enough for any of the small programs, even on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(240);

/// Environment of a test: the product, a directory of its own, and the machine for itself.
pub struct Bench {
    /// The collector.
    pub library: PathBuf,
    /// The `laggard` command.
    pub command: PathBuf,
    /// The MPI whose compilers and launcher are used.
    pub mpi: Mpi,
    /// Numbers of agents in [`Bench::analyze_all`].
    pub agents: &'static [u32],
    /// How long an analysis may take.
    pub limit: Duration,
    /// Empty at the start of the test; removed at its end if it passed.
    pub dir: PathBuf,
    machine: Machine,
}

/// Tests take turns on the machine, so that no test disturbs another one's program.
struct Machine {
    /// All tests share it; one that needs the machine to itself does not.
    all: Turn,
    /// Tests share it that run programs beside others; one that records does not.
    recordings: Turn,
    needs: Needs,
}

/// The parts of a test that need the machine to itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// All that it does.
    Everything,
    /// Recordings. What else it does only takes time that recordings leave.
    Recordings,
    /// Nothing.
    Nothing,
}

/// A lock that many share, or one has.
struct Turn {
    lock: File,
    /// Tests that wait for the lock hold this one, so that none gets the lock twice in a row.
    queue: File,
}

impl Turn {
    fn of(scratch: &Path, name: &str) -> Turn {
        let file = |name: &str| File::create(scratch.join(name)).expect("a lock file");
        let (lock, queue) = (file(name), file(&format!("{name}-queue")));
        Turn { lock, queue }
    }

    fn wait(&self, how: libc::c_int) {
        self.leave();
        flock(&self.queue, libc::LOCK_EX);
        flock(&self.lock, how);
        flock(&self.queue, libc::LOCK_UN);
    }

    fn leave(&self) {
        flock(&self.lock, libc::LOCK_UN);
    }
}

thread_local! {
    /// How many of these this test has.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// From now on this thread, and what it starts, has the time that others leave, or not. Returns whether it
/// has: not all users may take that back.
fn only_what_is_left(is_so: bool) -> bool {
    // SAFETY: never fails.
    if unsafe { libc::geteuid() } != 0 {
        return false;
    }
    let policy = if is_so {
        libc::SCHED_IDLE
    } else {
        libc::SCHED_OTHER
    };
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: about this thread; `none` outlives the call.
    let is_set = unsafe { libc::sched_setscheduler(0, policy, &none) } == 0;
    is_so && is_set
}

impl Machine {
    /// Waits for it.
    fn take(scratch: &Path, needs: Needs) -> Machine {
        HELD.set(HELD.get() + 1);
        let machine = Machine {
            all: Turn::of(scratch, "machine"),
            recordings: Turn::of(scratch, "recordings"),
            needs,
        };
        machine.turn(needs == Needs::Everything);
        machine
    }

    /// The next step of the test, maybe `alone`.
    fn turn(&self, alone: bool) {
        assert!(
            !alone || HELD.get() <= 1,
            "a test that shares the machine with another one of its own waits for itself"
        );
        let how = |is_alone| match is_alone {
            true => libc::LOCK_EX,
            false => libc::LOCK_SH,
        };
        self.recordings.leave();
        self.all.wait(how(alone && self.needs == Needs::Everything));
        let is_left = only_what_is_left(self.needs == Needs::Recordings && !alone);
        if !is_left {
            self.recordings.wait(how(alone));
        }
    }

    /// Lets a test that waits for a recording go first.
    fn pause(&self) {
        if self.needs != Needs::Everything {
            self.turn(false);
        }
    }

    /// Records, without other tests on the machine if the test needs that.
    fn record<T>(&self, what: impl FnOnce() -> T) -> T {
        match self.needs {
            Needs::Everything => {}
            Needs::Recordings => self.turn(true),
            Needs::Nothing => self.pause(),
        }
        let result = what();
        self.pause();
        result
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        HELD.set(HELD.get().saturating_sub(1));
        only_what_is_left(false);
    }
}

/// Takes a lock, or releases it; it is also released with the file.
fn flock(file: &File, how: libc::c_int) {
    // SAFETY: plain system call on a file that is open.
    unsafe { libc::flock(file.as_raw_fd(), how) };
}

impl Bench {
    /// Prepares a test. Waits until no other test uses the machine.
    ///
    /// Traces do not depend on the MPI, nor does their use. So with MPICH the analysis has one
    /// agent, if a test does not ask for more; `tests/other_mpi.rs` tests that several report the
    /// same.
    ///
    /// # Panics
    /// If the product has not been built.
    pub fn new(test: &str) -> Bench {
        Bench::of_chosen(test, Needs::Everything)
    }

    /// The same, for tests that need the machine to themselves only while they record. Their other
    /// steps, runs without the collector and analyses, do not measure time.
    ///
    /// # Panics
    /// As above.
    pub fn sharing(test: &str) -> Bench {
        Bench::of_chosen(test, Needs::Recordings)
    }

    /// The same, for tests that do not measure time at all.
    ///
    /// # Panics
    /// As above.
    pub fn beside(test: &str) -> Bench {
        Bench::of_chosen(test, Needs::Nothing)
    }

    fn of_chosen(test: &str, needs: Needs) -> Bench {
        let mut bench = Bench::prepare(test, Mpi::chosen(), needs);
        if bench.mpi == Mpi::Mpich {
            bench.agents = &[1];
        }
        bench
    }

    /// As [`Bench::beside`] with the whole product for a given MPI, whatever the MPI of this run.
    ///
    /// # Panics
    /// As above.
    pub fn with(test: &str, mpi: Mpi) -> Bench {
        Bench::prepare(test, mpi, Needs::Nothing)
    }

    fn prepare(test: &str, mpi: Mpi, needs: Needs) -> Bench {
        let scratch = scratch();
        fs::create_dir_all(&scratch).expect("a directory for the tests");
        let machine = Machine::take(&scratch, needs);
        let dir = scratch.join("runs").join(test);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory for the test");
        // It names the collector for the tested MPI. The command is the same for all.
        let library = Some("LAGGARD_LIB").filter(|_| mpi == Mpi::chosen());
        Bench {
            limit: TIMEOUT,
            library: built(library, mpi.product(), "liblaggard.so"),
            command: built(Some("LAGGARD_BIN"), "release", "laggard"),
            mpi,
            agents: &[1, 2, 3],
            dir,
            machine,
        }
    }

    /// A path in the test's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Compiles a source below `programs/`.
    ///
    /// # Panics
    /// With the compiler's messages, if it fails.
    pub fn compile(&self, source: &str, cflags: &[&str], libs: &[&str]) -> PathBuf {
        let compiler = self.mpi.compiler(Path::new(source));
        self.compile_with(&compiler, source, cflags, libs)
    }

    /// Compiles a shared library below `programs/`.
    ///
    /// # Panics
    /// With the compiler's messages, if it fails.
    pub fn library(&self, source: &str) -> PathBuf {
        self.compile(source, &["-shared", "-fPIC"], &[])
    }

    /// Compiles a source below `programs/` with this compiler.
    ///
    /// # Panics
    /// With the compiler's messages, if it fails.
    pub fn compile_with(
        &self,
        compiler: &str,
        source: &str,
        cflags: &[&str],
        libs: &[&str],
    ) -> PathBuf {
        let source = programs().join(source);
        let output = self.dir.join(source.file_stem().expect("a file"));
        let mut command = Command::new(compiler);
        command
            .args(["-O1", "-g"])
            .arg(self.mpi.cflag())
            .args(cflags)
            .arg(&source)
            .arg("-o")
            .arg(&output)
            .args(libs);
        if source.extension().is_some_and(|kind| kind == "f90") {
            // Where modules go.
            command.arg("-J").arg(&self.dir);
        }
        process::run(&mut command, TIMEOUT, &self.path("compile")).expect_success();
        output
    }

    /// Does what records in another way than [`Bench::traced`], such as `laggard run`, as the test's needs are.
    pub fn record<T>(&self, what: impl FnOnce() -> T) -> T {
        self.machine.record(what)
    }

    /// Runs a program on this many ranks without the collector.
    pub fn plain(&self, ranks: u32, program: &[&OsStr]) -> Mpirun<'_> {
        Mpirun {
            bench: self,
            ranks,
            program: program.iter().map(|p| p.into()).collect(),
            env: Vec::new(),
            trace: None,
            timeout: TIMEOUT,
            hosts: None,
            shmem: false,
        }
    }

    /// Runs a program with the collector, into the trace directory `trace`.
    pub fn traced(&self, ranks: u32, program: &[&OsStr], trace: &str) -> Mpirun<'_> {
        let mut run = self.plain(ranks, program);
        run.trace = Some(self.path(trace));
        run
    }

    /// Analyses a trace directory with this many agents; one agent runs without `mpirun`.
    pub fn analyze(&self, trace: &Path, agents: u32, report: &Path, options: &[&str]) -> Outcome {
        let mut command = match agents {
            1 => Command::new(&self.command),
            n => {
                let mut command = self.mpi.mpirun(n);
                command.arg(&self.command);
                command
            }
        };
        self.finish_analysis(&mut command, agents, (trace, report), options)
    }

    /// The same with agents on several hosts. Every agent writes its host's name into a file
    /// `agent.N` in the test's directory.
    pub fn analyze_on(&self, hosts: &Hosts, trace: &Path, agents: u32, report: &Path) -> Outcome {
        let mut command = hosts.mpirun(agents);
        command.args(["--map-by", "node", "sh", "-c"]);
        command.arg("hostname >\"$0.$OMPI_COMM_WORLD_RANK\"; exec \"$@\"");
        command.arg(self.path("agent")).arg(&self.command);
        self.finish_analysis(&mut command, agents, (trace, report), &["--all", "-q"])
    }

    fn finish_analysis(
        &self,
        command: &mut Command,
        agents: u32,
        (trace, report): (&Path, &Path),
        options: &[&str],
    ) -> Outcome {
        command
            .arg("analyze")
            .arg(trace)
            .arg("-o")
            .arg(report)
            .args(options);
        command.current_dir(&self.dir);
        clean_environment(command);
        self.machine.pause();
        process::run(
            command,
            self.limit,
            &self.path(&format!("analyze-{agents}")),
        )
    }

    /// The calls of a trace directory, as text.
    ///
    /// # Panics
    /// If the command fails.
    pub fn dump(&self, trace: &Path) -> String {
        let mut command = Command::new(&self.command);
        command.arg("dump").arg(trace);
        clean_environment(&mut command);
        let outcome = process::run(&mut command, TIMEOUT, &self.path("dump"));
        outcome.expect_orderly().expect_success().stdout
    }

    /// Analyses with `--all` and, mostly, one, two and three agents; returns the report's text.
    ///
    /// # Panics
    /// If an analysis fails, or the reports differ in more than the `agents` object or violate the
    /// schema.
    pub fn analyze_all(&self, trace: &Path) -> String {
        let first = self.analyze_valid(trace);
        for &agents in &self.agents[1..] {
            let other = self.analyze_by(trace, agents);
            if let Some(difference) = difference(&first, &other) {
                panic!("1 and {agents} agents write different reports: {difference}");
            }
        }
        first
    }

    /// The same, but several agents are threads of this process: that takes no launcher.
    ///
    /// # Panics
    /// As above.
    pub fn analyze_agreed(&self, trace: &Path) -> String {
        let report = self.analyze_valid(trace);
        if self.agents.len() > 1 {
            let mut options = AnalyzeOptions::default();
            options.settings.all = true;
            agents::assert_agreed(trace, &options);
        }
        report
    }

    /// The report of so many agents with `--all`.
    fn analyze_by(&self, trace: &Path, agents: u32) -> String {
        let path = self.path(&format!("report-{agents}.json"));
        let outcome = self.analyze(trace, agents, &path, &["--all", "-q"]);
        outcome.expect_orderly().expect_success();
        fs::read_to_string(&path).expect("a report")
    }

    /// That of the fewest agents: it is as the schema says.
    fn analyze_valid(&self, trace: &Path) -> String {
        let report = self.analyze_by(trace, self.agents[0]);
        let violations = crate::report::schema_violations(&report);
        assert_eq!(violations, [""; 0], "not as the schema says");
        report
    }
}

/// A directory that keeps traces that tests would remove, for `golden` (`src/bin/golden.rs`).
const KEEP: &str = "LAGGARD_TEST_KEEP";

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(kept) = std::env::var_os(KEEP) {
            let name = self.dir.file_name().unwrap_or_default();
            let _ = fs::rename(&self.dir, Path::new(&kept).join(name));
        }
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Whether time off the processor is recorded.
pub const PROCESSOR_TIME: &str = "LAGGARD_PROCESSOR_TIME";

/// A run to start.
pub struct Mpirun<'a> {
    bench: &'a Bench,
    ranks: u32,
    program: Vec<std::ffi::OsString>,
    env: Vec<(String, String)>,
    trace: Option<PathBuf>,
    timeout: Duration,
    hosts: Option<&'a Hosts>,
    shmem: bool,
}

impl<'a> Mpirun<'a> {
    /// Runs a program of OpenSHMEM with `oshrun`.
    pub fn shmem(mut self) -> Self {
        self.shmem = true;
        self
    }

    /// Runs on several hosts.
    pub fn on(mut self, hosts: &'a Hosts) -> Self {
        self.hosts = Some(hosts);
        self
    }
}

impl Mpirun<'_> {
    /// Adds a variable to the environment of the ranks.
    pub fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Sets another timeout.
    pub fn timeout(mut self, seconds: u64) -> Self {
        self.timeout = Duration::from_secs(seconds);
        self
    }

    /// The command line, with the collector preloaded as the documentation tells users to.
    pub fn command(&self) -> Command {
        let mpi = self.bench.mpi;
        let mut command = match self.hosts {
            Some(hosts) => hosts.mpirun(self.ranks),
            None if self.shmem => oshrun(self.ranks),
            None => mpi.mpirun(self.ranks),
        };
        clean_environment(&mut command);
        if let Some(trace) = &self.trace {
            let mut preload = self.bench.library.clone().into_os_string();
            for (_, more) in self.env.iter().filter(|(key, _)| key == "LD_PRELOAD") {
                preload.push(":");
                preload.push(more);
            }
            mpi.set(&mut command, "LD_PRELOAD", &preload);
            mpi.set(&mut command, "LAGGARD_TRACE_DIR", trace.as_os_str());
            // Our programs sleep where others compute, unless sleep is what they are about.
            let sleeps = !self.env.iter().any(|(key, _)| key == PROCESSOR_TIME);
            if sleeps
                && self
                    .program
                    .first()
                    .is_some_and(|p| Path::new(p).starts_with(scratch()))
            {
                mpi.set(&mut command, PROCESSOR_TIME, OsStr::new("0"));
            }
        }
        for (key, value) in &self.env {
            if key != "LD_PRELOAD" || self.trace.is_none() {
                mpi.set(&mut command, key, OsStr::new(value));
            }
        }
        if attempts::scale() != 1.0 {
            let scale = attempts::scale().to_string();
            mpi.set(&mut command, attempts::SCALE, OsStr::new(&scale));
        }
        command.args(&self.program).current_dir(&self.bench.dir);
        command
    }

    /// Runs it.
    pub fn run(&self) -> Outcome {
        let log = if self.trace.is_some() {
            "traced"
        } else {
            "plain"
        };
        let run = || process::run(&mut self.command(), self.timeout, &self.bench.path(log));
        let is_recorded = |(key, _): &(String, String)| key == "LD_PRELOAD";
        let is_alone = self.bench.machine.needs == Needs::Everything;
        match is_alone || self.trace.is_some() || self.env.iter().any(is_recorded) {
            true => self.bench.record(|| {
                let watch = Watch::begin();
                let outcome = run();
                // Launchers on other hosts leave their ranks to daemons.
                watch.end(self.hosts.is_none().then_some(outcome.processor));
                outcome
            }),
            false => {
                self.bench.machine.pause();
                run()
            }
        }
    }
}

/// Removes the product's own settings from a command's environment.
fn clean_environment(command: &mut Command) {
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("LAGGARD_") {
            command.env_remove(key);
        }
    }
}

/// `mpirun` of the tested MPI, for more ranks than cores.
pub fn mpirun(ranks: u32) -> Command {
    Mpi::chosen().mpirun(ranks)
}

/// The same for OpenSHMEM. Without the option, `shmem_finalize` of Open MPI 4.1.4 fails on Debian
/// 12.
pub fn oshrun(pes: u32) -> Command {
    let mut command = Command::new("oshrun");
    mpi::allow(&mut command);
    command.args(["--mca", "opal_common_ucx_opal_mem_hooks", "0"]);
    command.arg("-n").arg(pes.to_string());
    command
}

/// The directory of the test programs.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// The Python that has mpi4py.
///
/// # Panics
/// If there is none.
pub fn python() -> PathBuf {
    let candidates = ["/usr/bin/python3", "python3"];
    let works = |python: &&str| {
        let import = Command::new(python).args(["-c", "import mpi4py"]).output();
        import.is_ok_and(|output| output.status.success())
    };
    let found = candidates.iter().find(|python| works(python));
    PathBuf::from(found.expect("a python3 with mpi4py: run `make deps`"))
}

/// A Python with third-party readers of exported files, to run a script of `tests/python`.
///
/// # Panics
/// If they are not installed.
pub fn reader(script: &str) -> Command {
    let python = target().join("python/bin/python");
    assert!(
        python.is_file(),
        "{} is missing: run `make deps`",
        python.display()
    );
    let mut command = Command::new(python);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    command.arg("-I").arg(tests.join("python").join(script));
    command
}

/// The collector that is built for an MPI.
///
/// # Panics
/// If it has not been built.
pub fn collector(mpi: Mpi) -> PathBuf {
    built(None, mpi.product(), "liblaggard.so")
}

fn built(variable: Option<&str>, directory: &str, name: &str) -> PathBuf {
    let default = || target().join(directory).join(name);
    let path = variable.and_then(std::env::var_os);
    let path = path.map_or_else(default, PathBuf::from);
    assert!(
        path.is_file(),
        "{} is missing; build it first: `make build`, for MPICH `make build-mpich`",
        path.display()
    );
    path.canonicalize().expect("a path")
}
