//! Agents that ask and answer each other: in threads, and over TCP.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use laggard_comm::{self as comm, Job, Kind, merge_up};
use laggard_overlay::{
    Head, LinkJob, Linked, Lost, Members, Missing, Stop, Stream, Wait, Why, Work, link, node, tcp,
};
use tokio::runtime::Runtime;

/// Longest wait for what happens soon.
const PATIENCE: Duration = Duration::from_secs(30);

fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap()
}

/// Agents over TCP on this machine.
async fn over_tcp(agents: usize) -> Vec<Linked> {
    let host = tcp::Host::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), "127.0.0.1")
        .await
        .unwrap();
    let meeting = host.meeting().clone();
    let head = tokio::spawn(host.gather(agents, |_| ()));
    let joining = (1..agents).map(|_| {
        let meeting = meeting.clone();
        tokio::spawn(async move { tcp::join(&meeting).await.unwrap() })
    });
    let joining: Vec<_> = joining.collect();
    let mut all = Vec::new();
    for one in joining {
        all.push(one.await.unwrap());
    }
    all.push(head.await.unwrap().unwrap());
    all.sort_by_key(|one| one.link.agent());
    all
}

/// Both kinds of links.
fn links(runtime: &Runtime, agents: usize) -> [Vec<Linked>; 2] {
    [link::threads(agents), runtime.block_on(over_tcp(agents))]
}

#[test]
fn a_job_over_a_link_does_what_others_do() {
    let runtime = runtime();
    for agents in [1, 2, 3, 12] {
        for linked in links(&runtime, agents) {
            let found = LinkJob::run_all(linked, |job| {
                let me = job.agent();
                assert_eq!(job.agents(), agents);
                let sent = (0..agents).map(|to| vec![me as u8, to as u8]).collect();
                let expected: Vec<_> = (0..agents).map(|from| vec![from as u8, me as u8]).collect();
                assert_eq!(job.exchange(sent), expected);
                let mut values = [me as u64, 7, u64::MAX - me as u64];
                job.reduce_max(&mut values);
                assert_eq!(values, [agents as u64 - 1, 7, u64::MAX]);
                let mut values = [me as u64, 1];
                job.reduce_sum(&mut values);
                assert_eq!(values, [(0..agents as u64).sum(), agents as u64]);
                let mut bytes = if me == 0 { vec![1, 2, 3] } else { vec![9] };
                job.broadcast(&mut bytes);
                assert_eq!(bytes, [1, 2, 3]);
                let own = BTreeMap::from([(me, 1), (1000, 5)]);
                let sums = (0..agents).map(|agent| (agent, 1));
                let sums = sums.chain([(1000, 5 * agents as u64)]).collect();
                assert_eq!(merge_up(job, own).unwrap(), (me == 0).then_some(sums));
                let all = comm::union(job, vec![me / 2, 7]).unwrap();
                let expected: BTreeSet<usize> = (0..agents).map(|at| at / 2).chain([7]).collect();
                assert_eq!(all, expected.into_iter().collect::<Vec<_>>());
                let (mut left, mut pieces) = (3, Vec::new());
                job.relay(
                    &mut || {
                        left -= 1;
                        (left >= 0).then(|| vec![me as u8, left as u8])
                    },
                    &mut |piece| pieces.push(piece),
                );
                let of = |agent: usize| (0..3u8).rev().map(move |left| vec![agent as u8, left]);
                let expected = (0..agents).flat_map(of).filter(|_| me == 0);
                assert_eq!(pieces, expected.collect::<Vec<_>>());
                // Each agent hears of every other one, twice.
                for _ in 0..2 {
                    let mut heard = 1;
                    job.converse(&mut |letter, letters| {
                        match letter {
                            None => letters.extend(
                                (0..agents)
                                    .filter(|&to| to != me)
                                    .map(|to| (to, vec![me as u8])),
                            ),
                            Some((from, parcel)) => {
                                assert_eq!(parcel, [from as u8]);
                                heard += 1;
                            }
                        }
                        heard < agents
                    });
                }
                // More than any buffer has.
                let large = vec![me as u8; 3 << 20];
                job.all_gather(large).iter().map(Vec::len).sum::<usize>()
            });
            assert_eq!(found, vec![agents * (3 << 20); agents]);
        }
    }
}

/// Knows its number. Some agents never answer, some cannot.
struct Knows {
    me: usize,
    hangs: Vec<usize>,
    fails: Vec<usize>,
    stopped: Arc<AtomicUsize>,
}

impl Work for Knows {
    fn part(&self, question: &[u8], stop: &Stop) -> Result<Vec<u8>> {
        if self.fails.contains(&self.me) {
            bail!("its file is gone");
        }
        while self.hangs.contains(&self.me) && question == b"hang" {
            if stop.check().is_err() {
                self.stopped.fetch_add(1, Ordering::Relaxed);
                bail!("stopped");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(vec![self.me as u8])
    }

    fn merge(&self, _: &[u8], mut one: Vec<u8>, other: Vec<u8>) -> Result<Vec<u8>> {
        one.extend(other);
        one.sort_unstable();
        Ok(one)
    }
}

/// Agents that run, each a task that can be ended; the first is the head's.
fn tree(
    linked: Vec<Linked>,
    knows: impl Fn(usize) -> Knows,
) -> (Head, Vec<tokio::task::JoinHandle<()>>) {
    let mut linked = linked.into_iter();
    let (head, runs) = Head::new(linked.next().unwrap(), Arc::new(knows(0)));
    let mut tasks = vec![tokio::spawn(runs)];
    tasks.extend(linked.map(|linked| {
        let work = Arc::new(knows(linked.link.agent()));
        tokio::spawn(node::run(linked, work))
    }));
    (head, tasks)
}

fn able(me: usize) -> Knows {
    Knows {
        me,
        hangs: Vec::new(),
        fails: Vec::new(),
        stopped: Arc::default(),
    }
}

fn stream(members: Members, fan_out: usize, wait: Wait) -> Stream {
    Stream {
        members,
        fan_out,
        wait,
    }
}

#[test]
fn every_tree_has_the_same_answer() {
    let runtime = runtime();
    for linked in links(&runtime, 23) {
        runtime.block_on(async {
            let (head, tasks) = tree(linked, able);
            let all: Vec<u8> = (0..23).collect();
            for fan_out in [1, 2, 3, 8, 22, 100] {
                let reply = head
                    .ask(&stream(Members::all(23), fan_out, Wait::All), b"")
                    .await;
                assert_eq!(
                    (reply.part.as_ref(), &reply.missing[..]),
                    (Some(&all), &[][..])
                );
            }
            // Subsets that overlap, at the same time; also without the head.
            let some: Members = (0..23).filter(|agent| agent % 3 == 1).collect();
            let others: Members = (0..23).filter(|agent| agent % 2 == 1).collect();
            let (some, others) = (
                stream(some, 2, Wait::All),
                stream(others, 3, Wait::Until(9999)),
            );
            let (some, others) = tokio::join!(head.ask(&some, b""), head.ask(&others, b""));
            assert_eq!(
                some.part.unwrap(),
                (0..23).filter(|agent| agent % 3 == 1).collect::<Vec<u8>>()
            );
            assert_eq!(
                others.part.unwrap(),
                (0..23).filter(|agent| agent % 2 == 1).collect::<Vec<u8>>()
            );
            // Each as soon as it is there.
            let mut parts = Vec::new();
            head.ask_each(&Members::all(23), 4, b"", |reply| {
                parts.push(reply.part.unwrap())
            })
            .await;
            parts.sort_unstable();
            assert_eq!(parts.concat(), all);
            // The tree ends with its head.
            drop(head);
            for task in tasks {
                tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
            }
        });
    }
}

#[test]
fn who_is_late_is_named_and_the_others_answer() {
    let runtime = runtime();
    let stopped = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        let knows = |me| Knows {
            hangs: vec![1],
            stopped: stopped.clone(),
            ..able(me)
        };
        let (head, _tasks) = tree(link::threads(7), knows);
        // Agent 1 has 3 and 4 behind it, which answer: it only does not work in time itself.
        let asked = stream(Members::all(7), 2, Wait::Until(400));
        let reply = head.ask(&asked, b"hang").await;
        assert_eq!(reply.part.unwrap(), [0, 2, 3, 4, 5, 6]);
        let late = |agent| Missing {
            agent,
            why: Why::Late,
        };
        assert_eq!(reply.missing, [late(1)]);
        // It is told that nobody waits any more.
        let begun = Instant::now();
        while stopped.load(Ordering::Relaxed) == 0 {
            assert!(begun.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let reply = head.ask(&asked, b"again").await;
        assert_eq!((reply.part.unwrap().len(), reply.missing), (7, Vec::new()));
        // Without a policy that merges, the others' parts do not wait.
        let (mut parts, mut missing) = (0, Vec::new());
        let all = Members::all(7);
        let each = head.ask_each(&all, 2, b"hang", |reply| {
            parts += usize::from(reply.part.is_some());
            missing.extend(reply.missing);
        });
        assert!(
            tokio::time::timeout(Duration::from_millis(300), each)
                .await
                .is_err()
        );
        assert_eq!((parts, missing), (6, Vec::new()));
    });
    // Whose question is dropped, is stopped everywhere.
    let begun = Instant::now();
    while stopped.load(Ordering::Relaxed) < 2 {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn who_cannot_answer_is_named() {
    runtime().block_on(async {
        let knows = |me| Knows {
            fails: vec![2, 5],
            ..able(me)
        };
        let (head, _tasks) = tree(link::threads(6), knows);
        let reply = head.ask(&stream(Members::all(6), 2, Wait::All), b"").await;
        assert_eq!(reply.part.unwrap(), [0, 1, 3, 4]);
        let failed = |agent| Missing {
            agent,
            why: Why::Failed("its file is gone".to_owned()),
        };
        assert_eq!(reply.missing, [failed(2), failed(5)]);
    });
}

#[test]
fn who_is_gone_is_named_and_those_behind_it_answer() {
    let runtime = runtime();
    for linked in links(&runtime, 15) {
        runtime.block_on(async {
            let knows = |me| Knows {
                hangs: vec![1],
                ..able(me)
            };
            let (head, tasks) = tree(linked, knows);
            let asked = stream(Members::all(15), 2, Wait::All);
            assert_eq!(head.ask(&asked, b"").await.part.unwrap().len(), 15);
            // It ends while it is asked, with 6 behind it.
            let asking = head.clone();
            let of = asked.clone();
            let reply = tokio::spawn(async move { asking.ask(&of, b"hang").await });
            tokio::time::sleep(Duration::from_millis(50)).await;
            tasks[1].abort();
            let reply = tokio::time::timeout(PATIENCE, reply)
                .await
                .unwrap()
                .unwrap();
            let gone = Missing {
                agent: 1,
                why: Why::Gone,
            };
            assert_eq!(reply.missing, std::slice::from_ref(&gone));
            assert_eq!(reply.part.unwrap().len(), 14);
            let reply = head.ask(&asked, b"").await;
            assert_eq!((reply.part.unwrap().len(), reply.missing), (14, vec![gone]));
        });
    }
}

#[test]
fn who_says_nonsense_is_named_and_questions_go_on() {
    runtime().block_on(async {
        let mut linked = link::threads(2).into_iter().map(Linked::split);
        let (asks, counts, carry) = linked.next().unwrap();
        tokio::spawn(carry);
        let (answers, talks, carry) = linked.next().unwrap();
        tokio::spawn(carry);
        let counts = std::thread::spawn(move || LinkJob::new(counts).reduce_max(&mut [1, 2]));
        // Numbers for the head, 5 bytes too few.
        talks
            .link
            .send(0, [&[Kind::Tree as u8], &[7; 11][..]].concat());
        let why = counts.join().unwrap_err();
        let why = why.downcast::<Lost>().unwrap().0;
        assert_eq!(why, "agent 1 said 11 bytes in place of 16");
        let (head, _tasks) = tree(vec![asks, answers], able);
        let reply = head.ask(&stream(Members::all(2), 2, Wait::All), b"").await;
        assert_eq!((reply.part.unwrap(), reply.missing), (vec![0, 1], vec![]));
    });
    // What is to be unpacked.
    let mut linked = link::threads(2).into_iter();
    let (head, talks) = (linked.next().unwrap(), linked.next().unwrap());
    talks.link.send(0, vec![Kind::Tree as u8, 0x80]);
    let read = merge_up(&LinkJob::new(head), BTreeMap::from([(1, 1)])).unwrap_err();
    let read = format!("{read:#}");
    assert!(
        read.starts_with("what agent 1 said cannot be read: "),
        "{read}"
    );
}

#[test]
fn strangers_do_not_join() {
    runtime().block_on(async {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let host = tcp::Host::listen(local, "127.0.0.1").await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("meeting");
        std::fs::write(&path, host.meeting().text()).unwrap();
        let own = tcp::Meeting::read(&path).unwrap();
        assert_eq!(own.text(), host.meeting().text());
        // Another key.
        let mut wrong = host.meeting().text();
        let last = wrong.pop().and_then(|_| wrong.pop()).unwrap();
        wrong.push(if last == '0' { '1' } else { '0' });
        std::fs::write(&path, wrong).unwrap();
        let wrong = tcp::Meeting::read(&path).unwrap();
        for text in [
            "",
            "host 1",
            "host x 00112233445566778899aabbccddeeff",
            "host 1 0011",
            "host 1 é0112233445566778899aabbccddeef",
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(
                tcp::Meeting::read(&path)
                    .unwrap_err()
                    .to_string()
                    .contains("no file that")
            );
        }
        let head = tokio::spawn(host.gather(2, |_| ()));
        assert!(tcp::join(&wrong).await.is_err());
        // One that says nothing, one that says something else.
        let port: u16 = own.text().split(' ').nth(1).unwrap().parse().unwrap();
        let _silent = tokio::net::TcpStream::connect((local, port)).await.unwrap();
        let mut odd = tokio::net::TcpStream::connect((local, port)).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut odd, &[b'x'; 500])
            .await
            .unwrap();
        let joined = tcp::join(&own).await.unwrap();
        assert_eq!(joined.link.agent(), 1);
        assert_eq!(head.await.unwrap().unwrap().link.agents(), 2);
    });
}
