//! Questions to a tree of agents. All agents are tasks of this process that talk over TCP: what they
//! take of its cores adds up, while on machines of their own they would work at the same time. So the
//! parameters of the LogP model (Culler et al. 1993) are measured, too, and tell what a tree of
//! machines takes.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use laggard_overlay::filters::{Filter, Sum};
use laggard_overlay::{Head, Linked, Members, Stop, Stream, Tree, Wait, Work, node, tcp};
use tokio::task::JoinSet;

use crate::runs::Outcome;
use crate::table::{Table, median};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of agents.
    pub agents: Vec<usize>,
    /// Fan-outs, beside a flat tree.
    pub fan_outs: Vec<usize>,
    /// Questions.
    pub rounds: usize,
}

/// Numbers in each agent's part: a small one, and one as large as a map of waiting.
const SIZES: [usize; 2] = [8, 20_000];
/// Questions under way at a time, for the rate.
const AT_ONCE: usize = 16;
/// Agents of trees that are planned on paper.
const PLANNED: [usize; 4] = [512, 4096, 32_768, 100_000];

/// Answers with as many numbers as it is asked for.
struct Numbers {
    started: Instant,
    /// When the last agent had the question, ns since then.
    asked: AtomicU64,
}

impl Numbers {
    fn new() -> Arc<Numbers> {
        Arc::new(Numbers {
            started: Instant::now(),
            asked: AtomicU64::default(),
        })
    }

    /// µs of a question that was asked at a moment and is answered now: until all agents had it, and from then on.
    fn parts(&self, begun: Instant) -> (f64, f64) {
        let asked = self.started + Duration::from_nanos(self.asked.load(Ordering::Relaxed));
        (micros(asked - begun), micros(asked.elapsed()))
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Work for Numbers {
    fn part(&self, question: &[u8], _: &Stop) -> Result<Vec<u8>> {
        let now = self.started.elapsed().as_nanos() as u64;
        self.asked.fetch_max(now, Ordering::Relaxed);
        let count: usize = postcard::from_bytes(question)?;
        Ok(postcard::to_stdvec(&vec![Sum(1_000_000); count])?)
    }

    fn merge(&self, _: &[u8], one: Vec<u8>, other: Vec<u8>) -> Result<Vec<u8>> {
        let mut sums: Vec<Sum> = postcard::from_bytes(&one)?;
        sums.merge(postcard::from_bytes(&other)?);
        Ok(postcard::to_stdvec(&sums)?)
    }
}

/// What was measured of a tree.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Until all agents had the question (broadcast), and from then until the answer was there (reduction), medians, µs.
    down: f64,
    up: f64,
    /// Of all agents' work on a question, on processors, µs.
    work: f64,
    /// Questions that are answered in a second.
    rate: f64,
}

/// The parameters of the model, µs.
#[derive(Clone, Copy, Debug)]
struct Model {
    /// L: from one agent to another, without what both do.
    latency: f64,
    /// o: what the sender or the receiver of a message does, its share in making and merging parts included.
    overhead: f64,
    /// g: for each further agent that the same one asks: a message out, one in, its part merged.
    gap: f64,
}

impl Model {
    /// Of two agents, whose messages are two and do nothing else, and of a flat tree.
    fn new(pair: Times, (agents, flat): (usize, Times)) -> Model {
        let (pair_time, flat_time) = (pair.down + pair.up, flat.down + flat.up);
        let overhead = (pair.work / 4.0).min(pair_time / 4.0);
        Model {
            latency: pair_time / 2.0 - 2.0 * overhead,
            overhead,
            gap: ((flat_time - pair_time) / (agents - 2).max(1) as f64).max(0.0),
        }
    }

    /// What a question takes: on each row 2 (L + 2 o), and a gap for each further child.
    fn time(&self, agents: usize, fan_out: usize) -> f64 {
        let tree = Tree::new(&Members::all(agents), fan_out, |_| false);
        let children = fan_out.min(agents - 1) as f64;
        let round_trip = 2.0 * (self.latency + 2.0 * self.overhead);
        tree.depth() as f64 * (round_trip + self.gap * (children - 1.0))
    }
}

/// Measures time and rate, then the model, and what it says of more agents.
///
/// # Errors
/// The system has no more threads or connections.
pub fn measure(options: &Options, outcome: &mut Outcome) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    allow_files()?;
    for size in SIZES {
        let title = format!(
            "a question whose parts have {size} numbers: µs down + up at the median, and questions/s with {AT_ONCE} at a time"
        );
        let names: Vec<String> = options
            .fan_outs
            .iter()
            .map(|k| format!("fan-out {k}"))
            .collect();
        let mut head = vec!["agents"];
        head.extend(names.iter().map(String::as_str));
        head.push("flat");
        let mut table = Table::new(&title, &head);
        let pair = runtime.block_on(times(2, &[1], (size, options.rounds)))?[0];
        let mut model = None;
        for &agents in &options.agents {
            let fan_outs = options.fan_outs.iter().copied().chain([agents]);
            let fan_outs: Vec<usize> = fan_outs.collect();
            let rounds =
                (options.rounds * 64 / agents).clamp(options.rounds.min(11), options.rounds);
            let found = runtime.block_on(times(agents, &fan_outs, (size, rounds)))?;
            let cells = found
                .iter()
                .map(|of| format!("{:.0} + {:.0}, {:.0}/s", of.down, of.up, of.rate));
            table.row(std::iter::once(agents.to_string()).chain(cells));
            for (fan_out, of) in fan_outs.iter().zip(&found) {
                let name = format!(
                    "{size} numbers, {agents} agents, fan-out {fan_out}, µs down, up and of work, 1/s"
                );
                let values = vec![of.down, of.up, of.work, of.rate];
                outcome.raw.push((name, values));
            }
            let flat = found.last().context("a flat tree")?;
            model.get_or_insert(Model::new(pair, (agents, *flat)));
        }
        outcome.table(table);
        let model = model.context("some agents")?;
        outcome.table(plan(model, size, &options.fan_outs));
    }
    Ok(())
}

/// What the model says of agents on machines of their own.
fn plan(model: Model, size: usize, fan_outs: &[usize]) -> Table {
    let title = format!(
        "planned for agents on machines of their own, {size} numbers, ms: latency {:.0} µs, overhead {:.0} µs, gap {:.1} µs",
        model.latency, model.overhead, model.gap
    );
    let names: Vec<String> = fan_outs.iter().map(|k| format!("fan-out {k}")).collect();
    let mut head = vec!["agents"];
    head.extend(names.iter().map(String::as_str));
    head.push("flat");
    let mut table = Table::new(&title, &head);
    for agents in PLANNED {
        let all = fan_outs.iter().copied().chain([agents]);
        let cells = all.map(|fan_out| format!("{:.2}", model.time(agents, fan_out) / 1e3));
        table.row(std::iter::once(agents.to_string()).chain(cells));
    }
    table
}

/// Two connections for each pair that talks: more than a process may have as a rule.
fn allow_files() -> Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both take a valid limit.
    let is_set = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0
        }
    };
    is_set
        .then_some(())
        .context("the limit of open files cannot be raised")
}

/// Agents over TCP, the head's first.
async fn join_all(agents: usize) -> Result<Vec<Linked>> {
    let host = tcp::Host::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), "127.0.0.1").await?;
    let meeting = host.meeting().clone();
    let head = tokio::spawn(host.gather(agents, |_| ()));
    let mut joining = JoinSet::new();
    for _ in 1..agents {
        let meeting = meeting.clone();
        joining.spawn(async move { tcp::join(&meeting).await });
    }
    let mut all = Vec::new();
    while let Some(one) = joining.join_next().await {
        all.push(one??);
    }
    all.insert(0, head.await??);
    Ok(all)
}

/// What is measured, by fan-out.
async fn times(
    agents: usize,
    fan_outs: &[usize],
    (size, rounds): (usize, usize),
) -> Result<Vec<Times>> {
    let mut linked = join_all(agents).await?.into_iter();
    let first = linked.next().context("a head")?;
    let numbers = Numbers::new();
    let (head, own) = Head::new(first, numbers.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(own);
    for linked in linked {
        tasks.spawn(node::run(linked, numbers.clone()));
    }
    let question = postcard::to_stdvec(&size)?;
    let mut found = Vec::new();
    for &fan_out in fan_outs {
        let stream = Stream {
            members: Members::all(agents),
            fan_out,
            wait: Wait::All,
        };
        let (mut down, mut up) = (Vec::new(), Vec::new());
        let mut worked = Duration::ZERO;
        // The first one connects.
        for round in 0..=rounds {
            if round == 1 {
                worked = process_time();
            }
            let begun = Instant::now();
            let reply = head.ask(&stream, &question).await;
            let (asked, answered) = numbers.parts(begun);
            let sums: Vec<Sum> = postcard::from_bytes(&reply.part.context("an answer")?)?;
            anyhow::ensure!(sums.len() == size && sums[0] == Sum(1_000_000 * agents as i64));
            if round > 0 {
                down.push(asked);
                up.push(answered);
            }
        }
        let work = micros(process_time() - worked) / rounds as f64;
        let (begun, mut asked) = (Instant::now(), 0);
        let mut asking = JoinSet::new();
        while asked < rounds.max(AT_ONCE) || !asking.is_empty() {
            if asked < rounds.max(AT_ONCE) && asking.len() < AT_ONCE {
                let (head, stream, question) = (head.clone(), stream.clone(), question.clone());
                asking.spawn(async move { head.ask(&stream, &question).await });
                asked += 1;
            } else {
                asking.join_next().await;
            }
        }
        let rate = asked as f64 / begun.elapsed().as_secs_f64();
        found.push(Times {
            down: median(&down),
            up: median(&up),
            work,
            rate,
        });
    }
    head.end();
    let ended = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(Duration::from_secs(10), ended).await;
    Ok(found)
}

/// Time of all threads of this process on processors.
fn process_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
