//! `laggard serve --follow` and `laggard run --serve`: programs are looked at while they run. Pictures stay
//! below `target/tmp/serve`.

use std::ffi::OsStr;
use std::fs;
use std::net::TcpStream;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use laggard_tests::browser::Browser;
use laggard_tests::process::Launched;
use laggard_tests::product::{Bench, programs};
use laggard_tests::served::{PATIENCE, client, first_line, hear, reply, start};
use laggard_tests::tour::settle_on;
use serde_json::{Value, json};

const RANKS: u32 = 3;

/// A program that works in rounds until it is told what to do.
struct Running {
    bench: Bench,
    program: Launched,
    /// While it is there, the program does as its scene says.
    file: PathBuf,
}

impl Running {
    fn new(test: &str, scene: &str) -> Running {
        Running::with(test, scene, &[])
    }

    /// Recorded with these variables.
    fn with(test: &str, scene: &str, variables: &[(&str, &str)]) -> Running {
        let bench = Bench::beside(test);
        let program = bench.compile("attacks/goes_on.c", &[], &[]);
        let file = bench.path("told");
        let words = [program.as_os_str(), file.as_os_str(), OsStr::new(scene)];
        let mut command = bench.traced(RANKS, &words, "trace").command();
        command.envs(variables.iter().copied());
        command.stdout(Stdio::null());
        let program = Launched::new(&mut command);
        Running {
            bench,
            program,
            file,
        }
    }

    fn tell(&self) {
        fs::write(&self.file, "").expect("a file");
    }

    fn follow(&self, options: &[&str]) -> (Served, TcpStream) {
        let mut all = vec!["-q", "--follow"];
        all.extend(options);
        let (server, address) = start(&self.bench, &all);
        let client = client(&address);
        (Served { server, address }, client)
    }

    /// Waits until it has ended by itself.
    fn ends(&mut self) {
        assert!(self.program.wait().expect("a child").success());
    }
}

/// A server, which ends with this.
struct Served {
    server: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // Best effort: as Ctrl-C does.
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(self.server.id() as i32, libc::SIGINT) };
        let _ = self.server.wait();
    }
}

/// What the server tells next that is as wanted.
#[track_caller]
fn until(client: &mut TcpStream, is_right: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let heard: Value = serde_json::from_str(&hear(client)).expect("JSON");
        if is_right(&heard["news"]) {
            return heard["news"].clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{heard}");
    }
}

fn questions() -> [Value; 8] {
    [
        json!({"ask": "overview"}),
        json!({"ask": "heat", "metric": "waiting", "width": 300, "height": 3}),
        json!({"ask": "line", "width": 200, "first": 0, "last": 2}),
        json!({"ask": "line", "width": 200, "until_s": 0.2}),
        json!({"ask": "selection"}),
        json!({"ask": "selection", "first": 1, "last": 1, "from_s": 0.05, "until_s": 0.3}),
        json!({"ask": "tree", "metric": "waiting"}),
        json!({"ask": "matrix", "metric": "messages"}),
    ]
}

fn answers(client: &mut TcpStream) -> Vec<String> {
    let questions = questions().into_iter();
    let answer = |question| {
        let reply = reply(client, question);
        assert!(reply["answer"].is_object(), "{reply}");
        reply["answer"].to_string()
    };
    questions.map(answer).collect()
}

#[test]
fn what_was_followed_is_what_is_there_in_the_end() {
    for agents in ["1", "2", "3"] {
        let mut running = Running::new("follow-ends", "ends");
        let (served, mut client) = running.follow(&["--agents", agents]);
        let first = until(&mut client, |news| news["runs"] == true);
        let number = |news: &Value| news["number"].as_u64().expect("a number");
        let overview = reply(&mut client, json!({"ask": "overview"}));
        // The answer may be of any state since then.
        let known = overview["answer"]["end_s"].as_f64().expect("s");
        let later = until(&mut client, |news| {
            let goes_on = news["end_s"].as_f64().is_some_and(|end| end > known);
            number(news) >= number(&first) + 2 && goes_on
        });
        assert!(later["end_s"].as_f64() > first["end_s"].as_f64(), "{later}");
        assert_eq!(later["hangs"], json!([]));
        // Answers while it runs: who is late is known.
        let overview = reply(&mut client, json!({"ask": "overview"}));
        // That its trace has no end yet is no anomaly.
        assert_eq!(overview["answer"]["ended"], "");
        let odd = overview["answer"]["anomalies"].to_string();
        assert!(!odd.contains("truncated"), "{odd}");
        let cause = overview["answer"]["root_causes"][0]["what"].to_string();
        assert!(cause.contains("rank 1"), "{overview}");
        answers(&mut client);
        running.tell();
        running.ends();
        let last = until(&mut client, |news| news["runs"] == false);
        assert_eq!(last["text"], "The program has ended.");
        let followed = answers(&mut client);
        drop(served);
        fs::remove_file(running.bench.path("trace").join("laggard.index")).expect("an index");
        let (server, address) = start(&running.bench, &["-q"]);
        let afterwards = Served { server, address };
        let mut client = self::client(&afterwards.address);
        assert_eq!(answers(&mut client), followed, "{agents} agents");
    }
}

/// A program that is not ours, from its start to its end.
#[test]
fn what_was_followed_of_lammps_is_what_is_there_in_the_end() {
    let bench = Bench::beside("follow-lammps");
    let input = fs::read_to_string(programs().join("real/melt.in")).expect("an input");
    let longer = bench.path("melt.in");
    fs::write(&longer, input.replace("run 100", "run 3000")).expect("an input");
    let words = ["lmp", "-log", "none", "-in"].map(OsStr::new);
    let words = [&words[..], &[longer.as_os_str()]].concat();
    let mut command = bench.traced(RANKS, &words, "trace").command();
    let program = Launched::new(command.stdout(Stdio::null()));
    let running = Running {
        file: bench.path("told"),
        bench,
        program,
    };
    let start = |bench: &Bench| {
        let (server, address) = start(bench, &["-q", "--follow", "--agents", "2"]);
        (Served { server, address }, Vec::new())
    };
    ends_as_it_was_followed(running, start, "LAMMPS");
}

/// The views go on where a trace is analysed no more.
#[test]
fn beyond_a_limit_findings_end_and_views_go_on() {
    let mut running = Running::new("follow-limit", "ends");
    let (_served, mut client) = running.follow(&["--follow-mb", "0"]);
    let first = until(&mut client, |news| news["runs"] == true);
    let first_s = first["end_s"].as_f64().expect("s");
    let is_later = |news: &Value| {
        let goes_on = news["end_s"].as_f64().is_some_and(|end| end > first_s);
        goes_on && news["number"].as_u64() >= Some(2)
    };
    let later = until(&mut client, is_later);
    let text = later["text"].to_string();
    assert!(text.contains("Findings are of its first "), "{later}");
    let question = json!({"ask": "selection", "from_s": first_s});
    let selection = reply(&mut client, question);
    let times = selection["answer"]["times_s"].as_object().expect("times");
    let total = |name: &str| times[name].as_f64().expect("s");
    assert!(
        total("synchronization") > 0.0 && total("waiting") > 0.0,
        "{selection}"
    );
    running.tell();
    running.ends();
    let last = until(&mut client, |news| news["runs"] == false);
    assert_eq!(last["text"], "The program has ended.");
}

/// Whoever starts the agents, and however ranks share files: what was followed is what is there in the end.
#[track_caller]
fn ends_as_it_was_followed(
    mut running: Running,
    start: impl FnOnce(&Bench) -> (Served, Vec<Served>),
    what: &str,
) {
    let (served, _others) = start(&running.bench);
    let mut client = client(&served.address);
    until(&mut client, |news| news["number"].as_u64() >= Some(2));
    answers(&mut client);
    running.tell();
    running.ends();
    let last = until(&mut client, |news| news["runs"] == false);
    assert_eq!(last["text"], "The program has ended.", "{what}");
    let followed = answers(&mut client);
    drop(served);
    fs::remove_file(running.bench.path("trace").join("laggard.index")).expect("an index");
    let (server, address) = self::start(&running.bench, &["-q"]);
    let afterwards = Served { server, address };
    let mut client = self::client(&afterwards.address);
    assert_eq!(answers(&mut client), followed, "{what}");
}

#[test]
fn the_processes_of_an_mpi_job_follow() {
    for agents in [2, 3] {
        let running = Running::new("follow-mpi", "ends");
        let start = |bench: &Bench| {
            let mut job = bench.mpi.mpirun(agents);
            job.arg(&bench.command)
                .arg("serve")
                .arg(bench.path("trace"))
                .args(["-q", "--follow", "--fan-out", "1"]);
            let (server, address) = first_line(job);
            (Served { server, address }, Vec::new())
        };
        ends_as_it_was_followed(running, start, &format!("{agents} ranks"));
    }
}

#[test]
fn agents_that_join_follow() {
    let running = Running::new("follow-join", "ends");
    ends_as_it_was_followed(running, meeting, "joined");
}

/// A server whose second agent joins over TCP.
fn meeting(bench: &Bench) -> (Served, Vec<Served>) {
    let file = bench.path("meeting");
    let mut other = Command::new(&bench.command);
    other.arg("serve").arg(bench.path("trace"));
    other.args(["-q", "--follow", "--join"]).arg(&file);
    let begins = {
        let file = file.clone();
        std::thread::spawn(move || {
            let begun = Instant::now();
            while !file.exists() {
                assert!(begun.elapsed() < PATIENCE);
                std::thread::sleep(Duration::from_millis(20));
            }
            other.spawn().expect("an agent")
        })
    };
    let file = file.to_str().expect("a name");
    let (server, address) = start(bench, &["-q", "--follow", "--agents", "2", "--meet", file]);
    let server_of = |server| Served {
        server,
        address: String::new(),
    };
    let joined = server_of(begins.join().expect("an agent"));
    (Served { server, address }, vec![joined])
}

#[test]
fn files_of_nodes_are_followed() {
    for agents in ["1", "2"] {
        let running = Running::with("follow-nodes", "ends", &[("LAGGARD_FILE_PER", "node")]);
        let start = |bench: &Bench| {
            let (server, address) = start(bench, &["-q", "--follow", "--agents", agents]);
            (Served { server, address }, Vec::new())
        };
        ends_as_it_was_followed(running, start, &format!("{agents} agents"));
    }
}

/// Who is left cannot follow any further, but answers from what it has; the program goes on.
#[test]
fn an_agent_that_dies_while_it_follows_is_told() {
    let mut running = Running::new("follow-dies", "ends");
    let (mut served, mut others) = meeting(&running.bench);
    let mut client = client(&served.address);
    until(&mut client, |news| news["number"].as_u64() >= Some(1));
    others[0].server.kill().expect("a child");
    let told = until(&mut client, |news| {
        news["text"]
            .as_str()
            .is_some_and(|text| text.contains("agent 1 has ended"))
    });
    assert_eq!(told["runs"], false, "{told}");
    let rest = reply(&mut client, json!({"ask": "selection"}));
    let missing = &rest["answer"]["missing"][0];
    assert_eq!(missing["why"], "has ended", "{rest}");
    assert!(rest["answer"]["times_s"].is_object(), "{rest}");
    assert!(served.server.try_wait().expect("a child").is_none());
    running.tell();
    running.ends();
}

#[test]
fn a_hang_is_told_while_it_hangs() {
    hang_is_told("follow-hangs", &[], RANKS_HANG);
}

/// Threads that wait for threads stand still, too.
#[test]
fn a_hang_of_threads_is_told_while_it_hangs() {
    let who = (
        "mutexes",
        "threads 1-2 of rank 0 wait for each other, so that none can go on: thread 1 of rank 0 in \
         pthread_mutex_lock at ",
        ("MPI_Barrier", "main"),
    );
    hang_is_told("follow-hangs-threads", &[], who);
}

/// Threads that are in a call are named where ranks have several.
#[test]
fn threads_that_are_in_a_call_are_told() {
    let running = Running::new("follow-circles", "circles");
    let (_served, mut client) = running.follow(&[]);
    until(&mut client, |news| news["runs"] == true);
    running.tell();
    let waits = |news: &Value| {
        let calls = news["calls"].as_array().cloned().unwrap_or_default();
        let mut calls = calls.into_iter();
        calls.find(|row| row["call"] == "MPI_Recv" && row["ranks"] == "rank 0")
    };
    let news = until(&mut client, |news| waits(news).is_some());
    assert_eq!(waits(&news).expect("a call")["threads"], "1");
}

#[test]
fn a_hang_is_told_beyond_a_limit() {
    hang_is_told("follow-hangs-limit", &["--follow-mb", "0"], RANKS_HANG);
}

/// A scene, what is said of it, and a call that does not come back, with a part of its place.
type Hang = (&'static str, &'static str, (&'static str, &'static str));
const RANKS_HANG: Hang = (
    "hangs",
    "ranks 0-2 wait for each other, so that none can go on: rank 0 in MPI_Recv at ",
    ("MPI_Recv", "circle"),
);

#[track_caller]
fn hang_is_told(test: &str, options: &[&str], (scene, begins, (name, place)): Hang) {
    let running = Running::new(test, scene);
    let (_served, mut client) = running.follow(options);
    until(&mut client, |news| news["runs"] == true);
    running.tell();
    let has_one = |news: &Value| {
        news["hangs"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty())
    };
    // It may be found before a call has lasted long enough to be told.
    let is_told = |news: &Value| has_one(news) && news["calls"][0].is_object();
    let news = until(&mut client, is_told);
    assert_eq!(news["runs"], true);
    let text = news["hangs"][0].as_str().expect("a text");
    assert!(text.starts_with(begins), "{text}");
    let mut calls = news["calls"].as_array().into_iter().flatten();
    let call = calls.find(|call| call["call"] == name);
    let call = call.unwrap_or_else(|| panic!("no {name}: {news}"));
    assert!(call["place"].as_str().expect("a place").contains(place));
    assert!(call["for_s"].as_f64() >= Some(1.0));
    // Killed: what it was in stays known.
    drop(running);
    let last = until(&mut client, |news| news["runs"] == false);
    assert!(has_one(&last), "{last}");
}

/// Who ends all ranks when one has ended: the launcher, or with MPICH the process by which it has started them.
fn keeper(launcher: i32) -> i32 {
    let read = |what: String| fs::read_to_string(what).unwrap_or_default();
    let children = read(format!("/proc/{launcher}/task/{launcher}/children"));
    // Names are cut there.
    let is_proxy = |child: &&str| read(format!("/proc/{child}/comm")).starts_with("hydra_pmi_prox");
    let proxy = children.split_whitespace().find(is_proxy);
    proxy
        .and_then(|proxy| proxy.parse().ok())
        .unwrap_or(launcher)
}

#[test]
fn a_rank_that_is_killed_is_told_and_what_it_left_can_be_served() {
    let mut running = Running::new("follow-killed", "dies");
    let (served, mut client) = running.follow(&[]);
    until(&mut client, |news| news["runs"] == true);
    // The launcher would end all others at once.
    let launcher = keeper(running.program.id() as i32);
    // SAFETY: sends a signal to a child that has not been waited for, or to a child of its.
    unsafe { libc::kill(launcher, libc::SIGSTOP) };
    running.tell();
    let is_told = |news: &Value| {
        let text = news["text"].as_str().unwrap_or_default();
        text.ends_with(" Killed, or ended before its recording did: rank 1.")
    };
    let news = std::panic::catch_unwind(AssertUnwindSafe(|| until(&mut client, is_told)));
    // SAFETY: as before. It ends the others now.
    unsafe { libc::kill(launcher, libc::SIGCONT) };
    let news = news.unwrap_or_else(|told| std::panic::resume_unwind(told));
    assert_eq!(news["runs"], true, "{news}");
    assert!(!running.program.wait().expect("a child").success());
    let last = until(&mut client, |news| news["runs"] == false);
    let text = last["text"].as_str().expect("a text");
    assert!(
        text.ends_with(": ranks 0-2; rank 1 was the first."),
        "{text}"
    );
    let overview = reply(&mut client, json!({"ask": "overview"}));
    let ended = overview["answer"]["ended"].as_str().expect("a text");
    assert!(ended.starts_with("It did not end by itself: "), "{ended}");
    let odd = overview["answer"]["anomalies"].to_string();
    assert!(odd.contains("truncated trace"), "{odd}");
    let followed = answers(&mut client);
    drop(served);
    // As a page that comes later finds it.
    let (server, address) = start(&running.bench, &["-q"]);
    let afterwards = Served { server, address };
    let mut client = self::client(&afterwards.address);
    assert_eq!(answers(&mut client), followed);
}

#[test]
fn a_long_computation_is_no_hang() {
    let mut running = Running::new("follow-computes", "computes");
    let (_served, mut client) = running.follow(&[]);
    until(&mut client, |news| news["runs"] == true);
    running.tell();
    // Long enough to be told of a hang, if it was one.
    let waits = |news: &Value| {
        let calls = news["calls"].as_array();
        let last = |call: &Value| {
            call["call"] == "MPI_Barrier"
                && call["ranks"] == "ranks 0, 2"
                && call["for_s"].as_f64() > Some(4.0)
        };
        calls.is_some_and(|calls| calls.iter().any(last))
    };
    let news = until(&mut client, waits);
    assert_eq!(news["hangs"], json!([]));
    fs::remove_file(&running.file).expect("a file");
    running.ends();
    let last = until(&mut client, |news| news["runs"] == false);
    assert_eq!(last["hangs"], json!([]));
}

#[test]
fn a_trace_that_goes_underneath_is_told() {
    let mut running = Running::new("follow-removed", "ends");
    let (mut served, mut client) = running.follow(&[]);
    until(&mut client, |news| news["number"].as_u64() > Some(0));
    let trace = running.bench.path("trace");
    let file = trace.join("rank000001.thread000.lgt");
    // Cut off: the program goes on, and so does the server.
    let cut = fs::File::options().write(true).open(&file).expect("a file");
    cut.set_len(200).expect("cut off");
    let begun = Instant::now();
    loop {
        let said = reply(&mut client, json!({"ask": "selection"}));
        let error = said["error"].as_str().unwrap_or_default();
        if error.contains("removed or cut off")
            || said["answer"].is_object() && begun.elapsed() > Duration::from_secs(3)
        {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{said}");
    }
    fs::remove_dir_all(&trace).expect("removed");
    let told = until(&mut client, |news| {
        news["text"]
            .as_str()
            .is_some_and(|text| text.contains("goes no further"))
    });
    assert!(told["text"].to_string().contains("trace"), "{told}");
    assert!(served.server.try_wait().expect("a child").is_none());
    running.tell();
    running.ends();
}

/// Threads that come move those of other ranks, and each report numbers places and root causes anew.
#[test]
fn what_was_chosen_stays_when_threads_come() {
    let mut running = Running::new("follow-chosen", "more");
    let (served, mut client) = running.follow(&[]);
    until(&mut client, |news| news["number"].as_u64() >= Some(2));
    let mut browser = Browser::start(&running.bench.dir);
    // As links of earlier versions had it.
    browser.visit(&format!("{}#first=1&last=1&profile=rc1", served.address));
    settle_on(&mut browser, "document.body?.dataset.state === 'ready'");
    settle_on(&mut browser, "location.hash.includes('profile=rc-')");
    browser.value("document.getElementById('hot').click()");
    settle_on(&mut browser, "location.hash.includes('node=')");
    let words = "JSON.stringify(['ranks', 'profile', 'node'].map((name) =>
        new URLSearchParams(location.hash.slice(1)).get(name)))";
    let place =
        "document.querySelector('#tree tr.chosen')?.cells[0].textContent.replace(/[▸▾]/, ' ')";
    // The link is there before the answer that shows the row.
    settle_on(
        &mut browser,
        &format!("({place} ?? 'run').trim() !== 'run'"),
    );
    let chosen = [browser.value(words), browser.value(place)];
    assert!(
        chosen[0]
            .as_str()
            .expect("text")
            .starts_with("[\"1\",\"rc-"),
        "{chosen:?}"
    );
    running.tell();
    // The rank has three threads now.
    let note = "document.getElementById('course-note').textContent";
    settle_on(
        &mut browser,
        &format!("{note}.includes(' of 3 at a moment')"),
    );
    fs::remove_file(&running.file).expect("a file");
    running.ends();
    settle_on(
        &mut browser,
        "document.getElementById('live').dataset.state === 'ended'",
    );
    settle_on(&mut browser, "document.body.dataset.state === 'ready'");
    settle_on(
        &mut browser,
        &format!("{note}.includes(' of 3 at a moment')"),
    );
    assert_eq!([browser.value(words), browser.value(place)], chosen);
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(
        browser.value("document.getElementById('problem').textContent"),
        ""
    );
    // A root cause that is no more is said to be so.
    browser.value("location.hash = 'profile=rc-0123456789ab'");
    settle_on(&mut browser, "!location.hash.includes('profile')");
    settle_on(
        &mut browser,
        "document.getElementById('problem').textContent.startsWith('Not in the run')",
    );
}

#[test]
fn a_page_follows_a_program_that_run_has_started() {
    let bench = Bench::beside("follow-page");
    let program = bench.compile("attacks/goes_on.c", &[], &[]);
    let file = bench.path("told");
    let mut command = Command::new(&bench.command);
    command
        .args(["run", "--serve", "-o"])
        .arg(bench.path("trace"));
    command
        .env("LAGGARD_LIB", &bench.library)
        .env("LAGGARD_PROCESSOR_TIME", "0");
    let launcher = bench.mpi.mpirun(RANKS);
    command.envs(
        launcher
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .arg("--")
        .arg(launcher.get_program())
        .args(launcher.get_args());
    command.arg(&program).arg(&file).arg("ends");
    let (server, address) = first_line(command);
    let mut served = Served { server, address };
    let mut browser = Browser::start(&bench.dir);
    browser.visit(&served.address);
    settle_on(
        &mut browser,
        "document.getElementById('live').dataset.state === 'runs'",
    );
    settle_on(
        &mut browser,
        "Number(document.getElementById('live').dataset.number) > 2",
    );
    settle_on(&mut browser, "document.body.dataset.state === 'ready'");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("follow.png"), browser.picture(1200)).expect("a picture");
    fs::write(&file, "").expect("a file");
    settle_on(
        &mut browser,
        "document.getElementById('live').dataset.state === 'ended'",
    );
    settle_on(&mut browser, "document.body.dataset.state === 'ready'");
    // All of the run is in sight, since all of it was.
    let words = browser.value("location.hash");
    assert!(!words.as_str().expect("text").contains("until"), "{words}");
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(
        browser.value("document.getElementById('problem').textContent"),
        ""
    );
    // It stays until it is told.
    assert!(served.server.try_wait().expect("a child").is_none());
}
