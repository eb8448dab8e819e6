//! `laggard serve` by several agents: as processes of one machine, of an MPI job, and on several hosts.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use laggard_tests::hosts::{Hosts, Plan, Wires};
use laggard_tests::product::Bench;
use laggard_tests::served::{PATIENCE, Served, begin, client, first_line, reply, start};
use serde_json::{Value, json};

/// Questions about all ranks, some, and one.
fn questions() -> [Value; 5] {
    [
        json!({"ask": "overview"}),
        json!({"ask": "heat", "metric": "waiting", "width": 300, "height": 3}),
        json!({"ask": "line", "width": 200, "first": 1, "last": 3}),
        json!({"ask": "selection"}),
        json!({"ask": "tree", "metric": "waiting"}),
    ]
}

fn answers(address: &str) -> Vec<Value> {
    let mut client = client(address);
    let of = |question| reply(&mut client, question);
    questions().into_iter().map(of).collect()
}

/// As if Ctrl-C was pressed.
fn interrupt(server: &Child) {
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(server.id() as i32, libc::SIGINT) };
}

/// The agents that a server has started.
fn children(server: &Child) -> Vec<i32> {
    let id = server.id();
    let mut all = Vec::new();
    for task in fs::read_dir(format!("/proc/{id}/task")).expect("its threads") {
        let path = task.expect("a thread").path().join("children");
        let text = fs::read_to_string(path).unwrap_or_default();
        all.extend(
            text.split_whitespace()
                .map(|pid| pid.parse::<i32>().expect("a number")),
        );
    }
    all.sort_unstable();
    all
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: sends a signal to a process that the test's own server has started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Waits until a reply is as it should be.
#[track_caller]
fn until(address: &str, question: &Value, is_right: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    let mut client = client(address);
    loop {
        let found = reply(&mut client, question.clone());
        if is_right(&found) {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{found}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn any_number_of_agents_answers_the_same() {
    let mut served = Served::new("serve-agents");
    let index = served.bench.path("trace").join("laggard.index");
    let (alone, bytes) = (
        answers(&served.address),
        fs::read(&index).expect("an index"),
    );
    assert!(
        alone.iter().all(|reply| reply["answer"].is_object()),
        "{alone:?}"
    );
    served.end();
    let compare = |(mut server, address): (Child, String), what: &str| {
        assert_eq!(answers(&address), alone, "{what}");
        interrupt(&server);
        assert_eq!(server.wait().expect("a child").code(), Some(0), "{what}");
        assert_eq!(fs::read(&index).expect("an index"), bytes, "{what}");
    };
    for agents in ["2", "3"] {
        // Each makes the index anew.
        fs::remove_file(&index).expect("an index");
        let options = ["-q", "--agents", agents];
        compare(start(&served.bench, &options), agents);
        let mut job = served.bench.mpi.mpirun(agents.parse().expect("a number"));
        job.arg(&served.bench.command)
            .arg("serve")
            .arg(served.bench.path("trace"));
        job.args(["-q", "--fan-out", "1"]);
        // The launcher ends at a signal with a code of its own: the server ends by itself.
        job.args(["--idle", "0.1"]);
        let (mut server, address) = first_line(job);
        assert_eq!(answers(&address), alone, "{agents} ranks");
        assert_eq!(
            server.wait().expect("a child").code(),
            Some(0),
            "{agents} ranks"
        );
    }
}

#[test]
fn without_a_report_the_agents_analyse() {
    let mut served = Served::new("serve-agents-analyse");
    served.end();
    let of = |agents: &str| {
        let _ = fs::remove_file(served.bench.path("trace").join("report.json"));
        let (mut server, address) = start(&served.bench, &["-q", "--agents", agents]);
        let answer = answers(&address).swap_remove(0);
        interrupt(&server);
        server.wait().expect("a child");
        answer
    };
    let alone = of("1");
    assert!(
        alone["answer"]["findings"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty())
    );
    assert_eq!(alone, of("3"));
}

#[test]
fn the_rest_answers_without_an_agent_that_is_stopped_killed_or_has_lost_its_file() {
    let begin = |bench: &Bench| {
        start(
            bench,
            &["-q", "--agents", "4", "--wait", "1", "--fan-out", "2"],
        )
    };
    let mut served = Served::by("serve-agents-lost", begin);
    let question = json!({"ask": "selection"});
    let is_whole = |found: &Value| {
        found["answer"]["times_s"].is_object() && found["answer"]["missing"].is_null()
    };
    let whole = until(&served.address, &question, is_whole);
    let agents = children(&served.server);
    assert_eq!(agents.len(), 3);
    // One that is stopped does not answer in time; the others do.
    signal(agents[0], libc::SIGSTOP);
    let late = until(&served.address, &question, |found| !is_whole(found));
    let missing = &late["answer"]["missing"];
    assert!(
        missing.to_string().contains("did not answer in time"),
        "{missing}"
    );
    assert_eq!(late["answer"]["locations"], 4);
    // From then on, nobody stands behind it.
    let late = until(&served.address, &question, |found| !is_whole(found));
    let missing = late["answer"]["missing"].as_array().expect("rows");
    assert_eq!(
        (missing.len(), &missing[0]["why"]),
        (1, &json!("did not answer in time"))
    );
    let text = missing[0]["ranks"].as_str().expect("a text");
    assert!(text.starts_with("rank "), "one rank: {text}");
    signal(agents[0], libc::SIGCONT);
    assert_eq!(until(&served.address, &question, is_whole), whole);
    // One that is killed is gone at once, and stays so.
    signal(agents[1], libc::SIGKILL);
    for _ in 0..3 {
        let gone = until(&served.address, &question, |found| !is_whole(found));
        let missing = gone["answer"]["missing"].as_array().expect("rows");
        assert_eq!(
            (missing.len(), &missing[0]["why"]),
            (1, &json!("has ended")),
            "{gone}"
        );
    }
    // One whose file is cut off says so: rank 0 is the head's.
    let lost = |trace: &Path, rank: u32| {
        let file = trace.join(format!("rank{rank:06}.thread000.lgt"));
        let file = fs::OpenOptions::new()
            .write(true)
            .open(file)
            .expect("a location");
        file.set_len(100).expect("it is cut off");
    };
    let gone = until(&served.address, &question, |found| !is_whole(found));
    let gone = gone["answer"]["missing"][0]["ranks"]
        .as_str()
        .expect("a text")
        .to_owned();
    let rank = (1..4)
        .find(|rank| gone != format!("rank {rank}"))
        .expect("another one");
    lost(&served.bench.path("trace"), rank);
    let changed = until(&served.address, &question, |found| {
        found["answer"]["missing"]
            .as_array()
            .is_some_and(|rows| rows.len() == 2)
    });
    let missing = changed["answer"]["missing"].to_string();
    assert!(
        missing.contains("has changed since it was opened"),
        "{missing}"
    );
    served.end();
}

#[test]
fn a_file_that_is_cut_off_while_it_is_read_does_not_end_the_server() {
    let mut served = Served::new("serve-cut-off");
    let trace = served.bench.path("trace");
    let mut client = client(&served.address);
    // Cut off and put back in turns, so that questions meet every state.
    let file = trace.join("rank000002.thread000.lgt");
    let whole = fs::read(&file).expect("a location");
    for _ in 0..50 {
        for length in [0, whole.len() / 2] {
            let cut = fs::OpenOptions::new()
                .write(true)
                .open(&file)
                .expect("a location");
            cut.set_len(length as u64).expect("it is cut off");
            let found = reply(
                &mut client,
                json!({"ask": "line", "first": 2, "last": 2, "width": 90}),
            );
            assert!(
                found["error"]
                    .as_str()
                    .is_some_and(|text| text.contains("has changed")),
                "{found}"
            );
            fs::write(&file, &whole).expect("it is back");
        }
    }
    served.end();
}

#[test]
fn a_server_ends_when_nobody_looks_and_its_agents_with_it() {
    let begin = |bench: &Bench| start(bench, &["-q", "--agents", "3", "--idle", "0.1"]);
    let mut served = Served::by("serve-idle", begin);
    let agents = children(&served.server);
    let looks = client(&served.address);
    std::thread::sleep(Duration::from_secs(3));
    assert!(
        served.server.try_wait().expect("a child").is_none(),
        "somebody looks"
    );
    drop(looks);
    assert_eq!(served.server.wait().expect("a child").code(), Some(0));
    let begun = Instant::now();
    while agents
        .iter()
        .any(|agent| Path::new(&format!("/proc/{agent}")).exists())
    {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    // A server that is killed takes its agents along.
    let (mut server, _) = start(&served.bench, &["-q", "--agents", "3"]);
    let agents = children(&server);
    server.kill().expect("a child");
    server.wait().expect("a child");
    let begun = Instant::now();
    while agents
        .iter()
        .any(|agent| Path::new(&format!("/proc/{agent}/exe")).exists())
    {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Agents on two hosts, the head on a third one, and two clients beside it.
#[test]
fn agents_on_other_hosts_answer_two_clients() {
    let mut served = Served::new("serve-hosts");
    let alone = answers(&served.address);
    served.end();
    let plans = [Plan::new("node1"), Plan::new("node2")];
    let Some(hosts) = Hosts::new(&served.bench.dir, &plans, Wires::Fast) else {
        return;
    };
    let (trace, meeting) = (served.bench.path("trace"), served.bench.path("meeting"));
    let socket = served.bench.path("s");
    let command = |host: &str| -> Command {
        let mut command = hosts.on(host, &served.bench.command);
        command.arg("serve").arg(&trace).arg("-q");
        command
    };
    let mut head = command("login");
    head.args(["--agents", "3", "--meet"]).arg(&meeting);
    head.arg("--socket").arg(&socket);
    let agents = std::thread::scope(|scope| {
        let joining = scope.spawn(|| {
            let begun = Instant::now();
            while !meeting.exists() {
                assert!(begun.elapsed() < PATIENCE);
                std::thread::sleep(Duration::from_millis(10));
            }
            let of = |host| {
                command(host)
                    .arg("--join")
                    .arg(&meeting)
                    .spawn()
                    .expect("an agent")
            };
            ["node1", "node2"].map(of)
        });
        let (server, address) = first_line(head);
        (server, address, joining.join().expect("agents"))
    });
    let (mut server, address, agents) = agents;
    // Its key is of no use any more.
    assert!(!meeting.exists());
    let token = address.rsplit('/').nth(1).expect("a token");
    let connect = || {
        let stream = UnixStream::connect(&socket).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        begin(stream, "localhost", token).0
    };
    let received = || ["node1", "node2"].map(|host| (hosts.packets(host), hosts.received(host)));
    let before = received();
    let mut clients = [connect(), connect()];
    for _ in 0..10 {
        // Both ask before either is answered.
        for (question, expected) in questions().into_iter().zip(&alone) {
            std::thread::scope(|scope| {
                for client in &mut clients {
                    let question = question.clone();
                    scope.spawn(move || assert_eq!(&reply(client, question), expected));
                }
            });
        }
    }
    // 100 questions: each host gets a question and tells its part, in a few packets. Two that are
    // asked at once may share one.
    for ((packets, bytes), (packets_before, bytes_before)) in received().into_iter().zip(before) {
        let (packets, bytes) = (packets - packets_before, bytes - bytes_before);
        assert!((50..=1000).contains(&packets), "{packets} packets");
        assert!(bytes < 100 * 1000, "{bytes} bytes");
    }
    // Nothing is said while nobody asks, but by the network itself.
    std::thread::sleep(Duration::from_millis(300));
    let quiet = received();
    std::thread::sleep(Duration::from_secs(1));
    for ((now, _), (before, _)) in received().into_iter().zip(quiet) {
        assert!(now - before < 40, "{} packets", now - before);
    }
    interrupt(&server);
    assert_eq!(server.wait().expect("a child").code(), Some(0));
    for mut agent in agents {
        assert_eq!(agent.wait().expect("an agent").code(), Some(0));
    }
}
