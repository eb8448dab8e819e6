//! Questions to a tree of agents. All agents are tasks of this process that talk over TCP: what they
//! take of its cores adds up, while on machines of their own they would work at the same time. So the
//! parameters of the LogP model (Culler et al. 1993) are measured, too, and tell what a tree of
//! machines takes.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use laggard_overlay::filters::{Filter, Sum};
use laggard_overlay::{Head, Linked, Members, Stop, Stream, Tree, Wait, Work, node, tcp};
use tokio::task::JoinSet;

use crate::runs::Outcome;
use crate::table::Table;

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
struct Numbers;

impl Work for Numbers {
    fn part(&self, question: &[u8], _: &Stop) -> Result<Vec<u8>> {
        let count: usize = postcard::from_bytes(question)?;
        Ok(postcard::to_stdvec(&vec![Sum(1_000_000); count])?)
    }

    fn merge(&self, _: &[u8], one: Vec<u8>, other: Vec<u8>) -> Result<Vec<u8>> {
        let mut sums: Vec<Sum> = postcard::from_bytes(&one)?;
        sums.merge(postcard::from_bytes(&other)?);
        Ok(postcard::to_stdvec(&sums)?)
    }
}

/// The parameters of the model, µs.
#[derive(Clone, Copy, Debug)]
struct Model {
    /// From agent to agent and back, with all that both do: 2 (L + 2 o).
    round_trip: f64,
    /// For each further agent that the same one asks: a message out, one in, its part merged.
    gap: f64,
}

impl Model {
    /// Of two agents, and of a flat tree.
    fn new(pair: f64, (agents, flat): (usize, f64)) -> Model {
        Model {
            round_trip: pair,
            gap: ((flat - pair) / (agents - 2).max(1) as f64).max(0.0),
        }
    }

    /// What a question takes: on each row a round trip, and a gap for each further child.
    fn time(&self, agents: usize, fan_out: usize) -> f64 {
        let tree = Tree::new(&Members::all(agents), fan_out, |_| false);
        let children = fan_out.min(agents - 1) as f64;
        tree.depth() as f64 * (self.round_trip + self.gap * (children - 1.0))
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
            "a question whose parts have {size} numbers: µs at the median, and questions/s with {AT_ONCE} at a time"
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
        let pair = runtime.block_on(times(2, &[1], (size, options.rounds)))?[0].0;
        let mut model = None;
        for &agents in &options.agents {
            let fan_outs = options.fan_outs.iter().copied().chain([agents]);
            let fan_outs: Vec<usize> = fan_outs.collect();
            let rounds =
                (options.rounds * 64 / agents).clamp(options.rounds.min(11), options.rounds);
            let found = runtime.block_on(times(agents, &fan_outs, (size, rounds)))?;
            let cells = found
                .iter()
                .map(|(time, rate)| format!("{time:.0}, {rate:.0}/s"));
            table.row(std::iter::once(agents.to_string()).chain(cells));
            for (fan_out, (time, rate)) in fan_outs.iter().zip(&found) {
                let name =
                    format!("{size} numbers, {agents} agents, fan-out {fan_out}, µs and 1/s");
                outcome.raw.push((name, vec![*time, *rate]));
            }
            let flat = found.last().context("a flat tree")?.0;
            model.get_or_insert(Model::new(pair, (agents, flat)));
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
        "planned for agents on machines of their own, {size} numbers, ms: round trip {:.0} µs, gap {:.1} µs",
        model.round_trip, model.gap
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

/// By fan-out: the median time of a question, µs, and how many are answered in a second.
async fn times(
    agents: usize,
    fan_outs: &[usize],
    (size, rounds): (usize, usize),
) -> Result<Vec<(f64, f64)>> {
    let mut linked = join_all(agents).await?.into_iter();
    let first = linked.next().context("a head")?;
    let (head, own) = Head::new(first, Arc::new(Numbers));
    let mut tasks = JoinSet::new();
    tasks.spawn(own);
    for linked in linked {
        tasks.spawn(node::run(linked, Arc::new(Numbers)));
    }
    let question = postcard::to_stdvec(&size)?;
    let mut found = Vec::new();
    for &fan_out in fan_outs {
        let stream = Stream {
            members: Members::all(agents),
            fan_out,
            wait: Wait::All,
        };
        let mut took = Vec::new();
        // The first one connects.
        for round in 0..=rounds {
            let begun = Instant::now();
            let reply = head.ask(&stream, &question).await;
            let sums: Vec<Sum> = postcard::from_bytes(&reply.part.context("an answer")?)?;
            anyhow::ensure!(sums.len() == size && sums[0] == Sum(1_000_000 * agents as i64));
            if round > 0 {
                took.push(begun.elapsed());
            }
        }
        took.sort_unstable();
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
        found.push((took[took.len() / 2].as_secs_f64() * 1e6, rate));
    }
    head.end();
    let ended = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(Duration::from_secs(10), ended).await;
    Ok(found)
}
