//! Who hands a question on to whom.

use std::ops::Range;

use laggard_report::RankSet;
use serde::{Deserialize, Serialize};

/// Some agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members(RankSet);

impl Members {
    /// All of so many agents.
    pub fn all(agents: usize) -> Members {
        (0..agents).collect()
    }

    /// Whether an agent is among them.
    pub fn contains(&self, agent: usize) -> bool {
        self.position(agent).is_some()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len() as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|agent| agent as usize)
    }

    fn get(&self, position: usize) -> Option<usize> {
        self.0.nth(position as u64).map(|agent| agent as usize)
    }

    fn position(&self, agent: usize) -> Option<usize> {
        let agent = u32::try_from(agent).ok()?;
        self.0.position(agent).map(|at| at as usize)
    }
}

impl FromIterator<usize> for Members {
    fn from_iter<T: IntoIterator<Item = usize>>(agents: T) -> Members {
        Members(agents.into_iter().map(|agent| agent as u32).collect())
    }
}

/// A tree: the head, then its agents row by row, each with the same number of children.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Children of each agent.
    fan_out: usize,
    /// Agents that hand on.
    inner: Members,
    /// Agents behind all of these: nobody depends on them.
    outer: Members,
}

/// The head.
const HEAD: usize = 0;

impl Tree {
    /// A tree of `members`, whose root is the head in any case. Those of whom `is_outer` is true stand
    /// at its ends.
    pub fn new(members: &Members, fan_out: usize, is_outer: impl Fn(usize) -> bool) -> Tree {
        let others = || members.iter().filter(|&agent| agent != HEAD);
        Tree {
            fan_out: fan_out.max(1),
            inner: others().filter(|&agent| !is_outer(agent)).collect(),
            outer: others().filter(|&agent| is_outer(agent)).collect(),
        }
    }

    /// Agents in it, with the head.
    fn len(&self) -> usize {
        1 + self.inner.len() + self.outer.len()
    }

    /// Whether it is one of so many agents: what another one sent may be anything.
    pub fn is_of(&self, agents: usize) -> bool {
        let fits = |members: &Members| members.0.max().is_none_or(|last| (last as usize) < agents);
        let is_whole = self.fan_out > 0 && fits(&self.inner) && fits(&self.outer);
        is_whole
            && !self.inner.contains(HEAD)
            && !self.outer.contains(HEAD)
            && !self.outer.iter().any(|agent| self.inner.contains(agent))
    }

    fn position(&self, agent: usize) -> Option<usize> {
        let behind = || Some(1 + self.inner.len() + self.outer.position(agent)?);
        match agent {
            HEAD => Some(0),
            _ => self.inner.position(agent).map(|at| 1 + at).or_else(behind),
        }
    }

    fn at(&self, position: usize) -> Option<usize> {
        let Some(at) = position.checked_sub(1) else {
            return Some(HEAD);
        };
        let behind = || self.outer.get(at - self.inner.len());
        match at < self.inner.len() {
            true => self.inner.get(at),
            false => behind(),
        }
    }

    fn children_of(&self, position: usize) -> Range<usize> {
        let first = position.saturating_mul(self.fan_out).saturating_add(1);
        let first = first.min(self.len());
        first..first.saturating_add(self.fan_out).min(self.len())
    }

    /// Whom an agent asks.
    pub fn children(&self, agent: usize) -> Vec<usize> {
        let own = self.position(agent).map_or(0..0, |at| self.children_of(at));
        own.filter_map(|position| self.at(position)).collect()
    }

    /// Whom an agent answers.
    pub fn parent(&self, agent: usize) -> Option<usize> {
        let above = self.position(agent)?.checked_sub(1)? / self.fan_out;
        self.at(above)
    }

    /// An agent and all below it.
    pub fn below(&self, agent: usize) -> Vec<usize> {
        let Some(top) = self.position(agent) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut row = top..top + 1;
        while !row.is_empty() {
            found.extend(row.clone().filter_map(|position| self.at(position)));
            row = self.children_of(row.start).start..self.children_of(row.end - 1).end;
        }
        found
    }

    /// Rows below the head.
    pub fn depth(&self) -> usize {
        let (mut last, mut rows) = (self.len() - 1, 0);
        while last > 0 {
            last = (last - 1) / self.fan_out;
            rows += 1;
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Everybody is asked once, by the one that it answers.
        #[test]
        fn a_tree_has_all_its_members_once(
            agents in proptest::collection::btree_set(1usize..200, 0..100),
            fan_out in 1usize..20,
            outer in 1usize..10,
        ) {
            let members: Members = agents.iter().copied().collect();
            let tree = Tree::new(&members, fan_out, |agent| agent % outer == 1);
            let mut all = tree.below(HEAD);
            prop_assert_eq!(all.len(), agents.len() + 1);
            for &agent in &all {
                let children = tree.children(agent);
                prop_assert!(children.len() <= fan_out);
                let mut below: Vec<usize> = children.iter().flat_map(|&c| tree.below(c)).collect();
                below.push(agent);
                below.sort_unstable();
                let mut own = tree.below(agent);
                own.sort_unstable();
                prop_assert_eq!(below, own);
                prop_assert!(children.iter().all(|&child| tree.parent(child) == Some(agent)));
            }
            all.sort_unstable();
            prop_assert_eq!(all, std::iter::once(0).chain(agents).collect::<Vec<_>>());
        }
    }

    #[test]
    fn depth_and_membership() {
        let tree = |agents, fan_out| Tree::new(&Members::all(agents), fan_out, |_| false);
        assert_eq!(
            [1, 2, 3, 9].map(|agents| tree(agents, 2).depth()),
            [0, 1, 1, 3]
        );
        assert_eq!(tree(512, 511).depth(), 1);
        assert_eq!(tree(512, 8).depth(), 3);
        let some: Members = [3, 4, 7].into_iter().collect();
        assert!(some.contains(4) && !some.contains(5) && !some.contains(8));
    }

    #[test]
    fn a_tree_of_others_is_no_tree() {
        let tree = |inner: &[usize], outer: &[usize], fan_out| Tree {
            fan_out,
            inner: inner.iter().copied().collect(),
            outer: outer.iter().copied().collect(),
        };
        assert!(tree(&[1, 2], &[3], 2).is_of(4) && tree(&[], &[], 1).is_of(1));
        assert!(!tree(&[1, 2], &[3], 2).is_of(3));
        assert!(!tree(&[1, 2], &[3], 0).is_of(4));
        assert!(!tree(&[1, 2], &[2, 3], 2).is_of(4));
        assert!(!tree(&[0, 1], &[], 2).is_of(4) && !tree(&[1], &[0], 2).is_of(4));
    }
}
