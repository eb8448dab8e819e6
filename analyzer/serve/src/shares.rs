//! The shares that an agent answers from: one, or the newest of those that follow a program.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, Result};
use laggard_overlay::{Stop, Work};
use tokio::sync::watch;

use crate::news::News;
use crate::questions::{Question, merged};
use crate::share::Share;

/// Shares that are kept: questions about the last one may still be under way.
const KEPT: usize = 2;
/// Bytes of the number before a question.
const NUMBER: usize = size_of::<u64>();

/// What an agent answers from. A question is about the share that was the newest when it was asked, at
/// all agents.
pub struct Shares {
    kept: RwLock<VecDeque<(u64, Arc<Share>)>>,
    news: watch::Sender<Option<News>>,
}

impl Shares {
    /// Begins with this one.
    pub fn new(share: Share) -> Shares {
        Shares {
            kept: RwLock::new(VecDeque::from([(0, Arc::new(share))])),
            news: watch::channel(None).0,
        }
    }

    /// The newest, and its number.
    pub fn newest(&self) -> (u64, Arc<Share>) {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        // There is always one.
        kept[kept.len() - 1].clone()
    }

    /// From now on this is the newest.
    pub fn add(&self, share: Share) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let number = kept[kept.len() - 1].0 + 1;
        kept.push_back((number, Arc::new(share)));
        while kept.len() > KEPT {
            kept.pop_front();
        }
    }

    /// Tells the pages, at the head.
    pub fn tell(&self, news: News) {
        self.news.send_replace(Some(news));
    }

    /// What pages are told.
    pub fn news(&self) -> watch::Receiver<Option<News>> {
        self.news.subscribe()
    }

    /// A question about a share, as it goes to the agents.
    ///
    /// # Errors
    /// As [`Question::packed`].
    pub fn packed(number: u64, question: &Question) -> Result<Vec<u8>> {
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.extend(question.packed()?);
        Ok(bytes)
    }

    fn asked<'q>(&self, question: &'q [u8]) -> Result<(Arc<Share>, &'q [u8])> {
        let (number, question) = split(question)?;
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|one| one.0 == number);
        let found = found.context("the program has gone on since: ask again")?;
        Ok((found.1.clone(), question))
    }
}

fn split(question: &[u8]) -> Result<(u64, &[u8])> {
    let parts = question.split_first_chunk::<NUMBER>();
    let (number, question) = parts.context("no question")?;
    Ok((u64::from_le_bytes(*number), question))
}

impl Work for Shares {
    fn part(&self, question: &[u8], stop: &Stop) -> Result<Vec<u8>> {
        let (share, question) = self.asked(question)?;
        share.part(question, stop)
    }

    fn merge(&self, question: &[u8], one: Vec<u8>, other: Vec<u8>) -> Result<Vec<u8>> {
        merged(split(question)?.1, &one, &other)
    }
}
