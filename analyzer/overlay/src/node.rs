//! What an agent does in a tree: it hands questions down, works on them, and merges what comes up.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use laggard_comm::{Kind, Tree};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::job::packet;
use crate::link::{Arrived, Link, Linked};
use crate::message::{Command, Message, Missing, Reply, Wait, Why};
use crate::stop::Stop;

/// What agents know, and how it is merged.
pub trait Work: Send + Sync + 'static {
    /// This agent's part of an answer. Runs in a thread of its own.
    ///
    /// # Errors
    /// Why there is none.
    fn part(&self, question: &[u8], stop: &Stop) -> Result<Vec<u8>>;

    /// The part of two agents or groups of agents, whatever their order.
    ///
    /// # Errors
    /// They do not fit together.
    fn merge(&self, question: &[u8], one: Vec<u8>, other: Vec<u8>) -> Result<Vec<u8>>;
}

/// The head.
const HEAD: usize = 0;

/// Works for the head until it ends. To be run by every other agent.
pub async fn run(linked: Linked, work: Arc<dyn Work>) {
    let (_keep, commands) = unbounded_channel();
    run_with(linked, work, commands).await;
}

/// A question under way.
struct Asked {
    tree: Tree,
    wait: Wait,
    question: Arc<[u8]>,
    stop: Stop,
    /// Whether the own part is still worked on.
    works: bool,
    /// By child: those behind it, and itself, that have not answered.
    open: FxHashMap<usize, FxHashSet<usize>>,
    part: Option<Vec<u8>>,
    missing: Vec<Missing>,
    until: Option<Instant>,
    /// Who asked, at the head.
    reply: Option<UnboundedSender<Reply>>,
}

/// The result of work on a question.
type Done = (u64, Result<Vec<u8>, String>);

/// What comes of work, or why there is nothing.
fn done_with(work: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>, String> {
    match std::panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| format!("{error:#}")),
        Err(_) => Err("laggard failed to answer this question".to_owned()),
    }
}

struct Node {
    link: Arc<dyn Link>,
    work: Arc<dyn Work>,
    done: UnboundedSender<Done>,
    asked: FxHashMap<u64, Asked>,
    gone: FxHashSet<usize>,
}

/// As [`run`], with the commands of this process.
pub(crate) async fn run_with(
    mut linked: Linked,
    work: Arc<dyn Work>,
    mut commands: UnboundedReceiver<Command>,
) {
    let (done, mut results) = unbounded_channel();
    let mut node = Node {
        link: linked.link.clone(),
        work,
        done,
        asked: FxHashMap::default(),
        gone: FxHashSet::default(),
    };
    loop {
        let until = node.asked.values().filter_map(|asked| asked.until).min();
        let late = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let goes_on = tokio::select! {
            arrived = linked.next() => match arrived {
                Some(Arrived::Packet(from, packet)) => node.take(from, &packet),
                Some(Arrived::Gone(agent)) => node.lose(agent),
                None => false,
            },
            Some((number, result)) = results.recv() => {
                node.worked(number, result);
                true
            }
            command = commands.recv() => node.obey(command),
            () = late => {
                node.give_up();
                true
            }
        };
        if !goes_on {
            return;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.asked.values().for_each(|asked| asked.stop.stop());
    }
}

impl Node {
    fn me(&self) -> usize {
        self.link.agent()
    }

    fn send(&self, to: usize, message: &Message) {
        // Numbers, texts and lists can always be packed.
        if let Ok(bytes) = postcard::to_stdvec(message) {
            self.link.send(to, packet(Kind::Question, &bytes));
        }
    }

    /// A command of this process. Returns whether to go on.
    fn obey(&mut self, command: Option<Command>) -> bool {
        match command {
            Some(Command::Ask(message, reply)) => self.hear(HEAD, message, Some(reply)),
            Some(Command::Stop(number)) => self.hear(HEAD, Message::Stop { number }, None),
            Some(Command::End) | None => {
                for agent in (1..self.link.agents()).filter(|agent| !self.gone.contains(agent)) {
                    self.send(agent, &Message::End);
                }
                false
            }
        }
    }

    /// A packet of another agent. Returns whether to go on.
    fn take(&mut self, from: usize, packet: &[u8]) -> bool {
        let body = packet.strip_prefix(&[Kind::Question as u8]);
        let message = body.and_then(|body| postcard::from_bytes(body).ok());
        let message = message.filter(|message| self.may_say(from, message));
        message.is_none_or(|message| self.hear(from, message, None))
    }

    /// Whether a message makes sense, and is of an agent that it can come from.
    fn may_say(&self, from: usize, message: &Message) -> bool {
        let me = self.me();
        let is_above = |tree: &Tree| tree.parent(me) == Some(from);
        match message {
            Message::Ask { tree, .. } => tree.is_of(self.link.agents()) && is_above(tree),
            Message::Stop { number } => {
                let asked = self.asked.get(number);
                asked.is_some_and(|asked| is_above(&asked.tree))
            }
            Message::End => from == HEAD,
            // Who was not asked is not heard.
            Message::Part { .. } => true,
        }
    }

    fn hear(
        &mut self,
        from: usize,
        message: Message,
        reply: Option<UnboundedSender<Reply>>,
    ) -> bool {
        match message {
            Message::Ask {
                number,
                tree,
                head,
                wait,
                question,
            } => self.ask(number, (tree, head), wait, question, reply),
            Message::Part {
                number,
                of,
                part,
                missing,
            } => self.answered(from, number, of, part, missing),
            Message::Stop { number } => {
                if let Some(asked) = self.asked.remove(&number) {
                    asked.stop.stop();
                    for &child in asked.open.keys() {
                        self.send(child, &Message::Stop { number });
                    }
                }
            }
            Message::End => return false,
        }
        true
    }

    fn ask(
        &mut self,
        number: u64,
        (tree, head): (Tree, bool),
        wait: Wait,
        question: Vec<u8>,
        reply: Option<UnboundedSender<Reply>>,
    ) {
        let me = self.me();
        let asked = Asked {
            question: question.into(),
            stop: Stop::default(),
            works: me != HEAD || head,
            open: FxHashMap::default(),
            part: None,
            missing: Vec::new(),
            until: match wait {
                Wait::Until(ms) => Instant::now().checked_add(Duration::from_millis(ms)),
                _ => None,
            },
            reply,
            tree,
            wait,
        };
        let asked = self.asked.entry(number).insert_entry(asked).into_mut();
        let children = asked.tree.children(me);
        if !children.is_empty() {
            let message = Message::Ask {
                number,
                tree: asked.tree.clone(),
                head,
                wait: match wait {
                    // Those below name who is missing before they are missing themselves.
                    Wait::Until(ms) => Wait::Until(ms - ms / 8),
                    other => other,
                },
                question: asked.question.to_vec(),
            };
            for &child in &children {
                let below = asked.tree.below(child).into_iter().collect();
                asked.open.insert(child, below);
            }
            for &child in &children {
                self.send(child, &message);
            }
        }
        let Some(asked) = self.asked.get(&number) else {
            return;
        };
        if asked.works {
            let (work, done) = (self.work.clone(), self.done.clone());
            let (question, stop) = (asked.question.clone(), asked.stop.clone());
            tokio::task::spawn_blocking(move || {
                let part = done_with(|| work.part(&question, &stop));
                // Nobody takes it if this agent ends.
                let _ = done.send((number, part));
            });
        }
        for child in children {
            if self.gone.contains(&child) {
                self.miss(number, child, &Why::Gone);
            }
        }
        self.settle(number);
    }

    /// The own part is there.
    fn worked(&mut self, number: u64, result: Result<Vec<u8>, String>) {
        let me = self.me();
        let Some(asked) = self.asked.get_mut(&number) else {
            return;
        };
        asked.works = false;
        self.add(number, me, result);
        self.settle(number);
    }

    /// Something came up.
    fn answered(
        &mut self,
        from: usize,
        number: u64,
        of: Option<usize>,
        part: Option<Vec<u8>>,
        mut missing: Vec<Missing>,
    ) {
        let Some(asked) = self.asked.get_mut(&number) else {
            return;
        };
        let Some(open) = asked.open.get_mut(&from) else {
            return;
        };
        // It speaks for those behind it alone.
        missing.retain(|one| open.contains(&one.agent));
        if asked.wait == Wait::None {
            for agent in of.iter().chain(missing.iter().map(|one| &one.agent)) {
                open.remove(agent);
            }
        } else {
            open.clear();
        }
        if open.is_empty() {
            asked.open.remove(&from);
        }
        if asked.wait == Wait::None {
            self.pass_on(number, of, part, missing);
        } else {
            asked.missing.extend(missing);
            if let Some(part) = part {
                self.add(number, from, Ok(part));
            }
        }
        self.settle(number);
    }

    /// Adds the part of an agent, or of all below it.
    fn add(&mut self, number: u64, agent: usize, part: Result<Vec<u8>, String>) {
        let Some(asked) = self.asked.get_mut(&number) else {
            return;
        };
        if asked.wait == Wait::None {
            let missing = part.as_ref().err().map(|why| Missing {
                agent,
                why: Why::Failed(why.clone()),
            });
            let missing: Vec<Missing> = missing.into_iter().collect();
            return self.pass_on(number, Some(agent), part.ok(), missing);
        }
        let merged = match (part, asked.part.take()) {
            (Ok(part), None) => Ok(part),
            (Ok(part), Some(before)) => {
                let kept = before.clone();
                let merged = done_with(|| self.work.merge(&asked.question, before, part));
                merged.inspect_err(|_| asked.part = Some(kept))
            }
            (Err(why), before) => {
                asked.part = before;
                Err(why)
            }
        };
        match merged {
            Ok(merged) => asked.part = Some(merged),
            Err(why) => asked.missing.push(Missing {
                agent,
                why: Why::Failed(why),
            }),
        }
    }

    /// Passes something on at once.
    fn pass_on(
        &self,
        number: u64,
        of: Option<usize>,
        part: Option<Vec<u8>>,
        missing: Vec<Missing>,
    ) {
        let Some(asked) = self.asked.get(&number) else {
            return;
        };
        if let Some(reply) = &asked.reply {
            // Who asked may have left.
            let _ = reply.send(Reply { part, missing });
        } else if let Some(parent) = asked.tree.parent(self.me()) {
            let message = Message::Part {
                number,
                of,
                part,
                missing,
            };
            self.send(parent, &message);
        }
    }

    /// Ends a question that nothing is missing of any more.
    fn settle(&mut self, number: u64) {
        let is_done = |asked: &Asked| !asked.works && asked.open.is_empty();
        if !self.asked.get(&number).is_some_and(is_done) {
            return;
        }
        if let Some(asked) = self.asked.get_mut(&number)
            && asked.wait != Wait::None
        {
            let (part, mut missing) = (asked.part.take(), std::mem::take(&mut asked.missing));
            missing.sort();
            self.pass_on(number, None, part, missing);
        }
        self.asked.remove(&number);
    }

    /// A child and those below it do not answer a question any more.
    fn miss(&mut self, number: u64, child: usize, why: &Why) {
        let Some(asked) = self.asked.get_mut(&number) else {
            return;
        };
        let below = asked.open.remove(&child).unwrap_or_default();
        let missing = below.into_iter().map(|agent| Missing {
            agent,
            why: match agent == child {
                true => why.clone(),
                false => Why::Behind,
            },
        });
        let missing: Vec<Missing> = missing.collect();
        if asked.wait == Wait::None {
            self.pass_on(number, None, None, missing);
        } else {
            asked.missing.extend(missing);
        }
    }

    /// An agent has ended. Returns whether to go on.
    fn lose(&mut self, agent: usize) -> bool {
        self.gone.insert(agent);
        let asked: Vec<u64> = self.asked.keys().copied().collect();
        for number in asked {
            self.miss(number, agent, &Why::Gone);
            self.settle(number);
        }
        agent != HEAD || self.me() == HEAD
    }

    /// Answers what is late without those who are.
    fn give_up(&mut self) {
        let (now, me) = (Instant::now(), self.me());
        let is_late = |asked: &Asked| asked.until.is_some_and(|until| until <= now);
        let late = self.asked.iter().filter(|(_, asked)| is_late(asked));
        let late: Vec<u64> = late.map(|(number, _)| *number).collect();
        for number in late {
            let Some(asked) = self.asked.get_mut(&number) else {
                continue;
            };
            let children: Vec<usize> = asked.open.keys().copied().collect();
            if std::mem::take(&mut asked.works) {
                asked.stop.stop();
                let why = Why::Late;
                asked.missing.push(Missing { agent: me, why });
            }
            for child in children {
                self.send(child, &Message::Stop { number });
                self.miss(number, child, &Why::Late);
            }
            self.settle(number);
        }
    }
}
