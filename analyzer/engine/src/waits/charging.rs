//! Wait states, and the one place that charges calls.

use laggard_patterns::PatternId;

use crate::basics::ends::NONE;
use crate::stream::polling::Episode;
use crate::waits::log::{Log, ShortLog};
use crate::waits::sums::LocalFindings;
use crate::waits::trail::Trail;
use crate::wire::parcels::Detail;

/// A call that waited. Its location and enter identify it; of looks elsewhere, those of the look that found something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// World rank.
    pub rank: u32,
    /// Position of the thread in the rank.
    pub thread: u32,
    /// Its enter, ns.
    pub enter: i64,
    /// When its wait began, ns: before it, if it ended an episode of looks.
    pub since: i64,
    /// Its leave, ns.
    pub leave: i64,
    /// Its signature, or that of the looks elsewhere.
    pub signature: u32,
}

/// The late parties of a call: their ranks, threads, late calls (number in the location, and time),
/// and their activity.
#[derive(Clone, Copy, Debug)]
pub enum Whom<'a> {
    /// None, or unknown.
    Nobody,
    One(&'a Detail),
    /// Several, one after another or at once; each with its share, ns.
    Several(&'a [(i64, Detail)]),
}

impl<'a> Whom<'a> {
    /// The late party; of several the one with the largest share, and of equal ones the first.
    pub fn most(&self) -> Option<&'a Detail> {
        match *self {
            Whom::Nobody => None,
            Whom::One(late) => Some(late),
            Whom::Several(shares) => {
                let most = shares.iter().rev().max_by_key(|(share, _)| *share);
                most.map(|(_, late)| late)
            }
        }
    }
}

/// Reason, duration and late parties of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// Which pattern.
    pub pattern: PatternId,
    /// Time lost, ns.
    pub severity: i64,
    /// Doubtful part, ns: the call ended otherwise than the pattern says.
    pub doubt: i64,
    /// The late parties.
    pub whom: Whom<'a>,
    /// When the first member left the collective, ns; `i64::MAX` if it is none.
    pub left: i64,
    /// Communicator or window in which it waited; 0 if that is the call's.
    pub group: u64,
    /// If it was lost in looks.
    pub looked: Option<Looked>,
}

/// The looks in which time was lost. There may be work between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looked {
    /// Their begin, ns.
    pub since: i64,
    /// Their end, ns.
    pub until: i64,
    /// See [`Episode::beside`].
    pub beside: bool,
    /// A signature of the looks, if they are elsewhere than the one that found something; otherwise `NONE`.
    pub elsewhere: u32,
}

/// An owned [`Loss`].
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// Which pattern.
    pub pattern: PatternId,
    /// Time lost, ns.
    pub severity: i64,
    /// Doubtful part, ns.
    pub doubt: i64,
    /// The late party, if it is one.
    pub late: Option<Detail>,
    /// The late parties, if they are several: each with its share, ns.
    pub shares: Vec<(i64, Detail)>,
    /// See [`Loss::left`].
    pub left: i64,
    /// See [`Loss::group`].
    pub group: u64,
    /// See [`Loss::looked`].
    pub looked: Option<Looked>,
}

#[derive(Clone, Copy, Debug)]
pub struct WaitState<'a> {
    /// The waiting call.
    pub waiting: Waiting,
    pub loss: Loss<'a>,
    /// Time lost to late parties on other hosts, ns.
    pub inter_host: i64,
}

/// Takes wait states; their order may depend on the number of agents.
pub trait Sink {
    /// Takes one wait state.
    fn take(&mut self, wait: &WaitState<'_>);
}

/// The host of each world rank, as a number.
#[derive(Clone, Copy, Debug)]
pub struct Hosts<'a>(pub &'a [u32]);

impl Hosts<'_> {
    /// Whether two world ranks are on different hosts.
    fn differ(self, a: u32, b: u32) -> bool {
        self.0.get(a as usize) != self.0.get(b as usize)
    }
}

/// Charges of the calls of a thread.
#[derive(Debug, Default)]
pub struct Charged {
    /// Sums.
    pub findings: LocalFindings,
    /// Whether there are none.
    pub is_bare: bool,
    /// Every charge, if requested.
    pub log: Option<Log>,
    /// Every charge in short, if requested.
    pub short: Option<ShortLog>,
    /// By signature: shorter calls are left out of the sums, ns. Empty: none is.
    pub least: Vec<i64>,
    /// The waits, if root causes are searched.
    pub trail: Option<Trail>,
}

impl Charged {
    /// Charges a call with a loss, if the severity is positive.
    #[inline]
    pub fn charge(&mut self, hosts: Hosts<'_>, waiting: Waiting, loss: Loss<'_>) {
        if loss.severity <= 0 {
            return;
        }
        let elsewhere = loss.looked.map(|looked| looked.elsewhere);
        let waiting = match elsewhere.filter(|&signature| signature != NONE) {
            Some(signature) => Waiting {
                signature,
                ..waiting
            },
            None => waiting,
        };
        let differs = |late: &Detail| hosts.differ(waiting.rank, late.rank);
        let inter_host = match loss.whom {
            _ if self.is_bare => 0,
            Whom::One(late) if differs(late) => loss.severity,
            Whom::Several(shares) => {
                let far = shares.iter().filter(|(_, late)| differs(late));
                far.map(|(share, _)| share).sum::<i64>().min(loss.severity)
            }
            _ => 0,
        };
        let wait = WaitState {
            waiting,
            loss,
            inter_host,
        };
        if let Some(log) = &mut self.log {
            log.take(&wait);
        }
        if let Some(log) = &mut self.short {
            log.take(&wait);
        }
        if self.is_bare {
            return;
        }
        let least = self.least.get(waiting.signature as usize);
        // The calls of a loop that looks are short, whatever it waits for.
        let is_slow = |&least: &i64| waiting.leave - waiting.since >= least;
        let looks = || loss.pattern.is_polled() || loss.pattern == PatternId::LookedInVain;
        if least.is_none_or(is_slow) || looks() {
            self.findings.take(&wait);
        }
        if let Some(trail) = &mut self.trail {
            trail.take(&wait);
        }
    }

    /// Charges a call with several losses. Returns their sum, ns.
    pub fn charge_all(&mut self, hosts: Hosts<'_>, waiting: Waiting, lost: &[Lost]) -> i64 {
        for lost in lost {
            self.charge(hosts, waiting, lost.as_loss());
        }
        total(lost)
    }
}

/// Time lost, ns.
pub fn total(lost: &[Lost]) -> i64 {
    let severities = lost.iter().map(|lost| lost.severity.max(0));
    severities.fold(0, i64::saturating_add)
}

impl<'a> Loss<'a> {
    /// Unexplained time, ns.
    pub fn unexplained(severity: i64) -> Self {
        Loss::sure(PatternId::Unexplained, severity, None)
    }

    /// A loss without doubt.
    pub fn sure(pattern: PatternId, severity: i64, late: Option<&'a Detail>) -> Self {
        Loss {
            pattern,
            severity,
            doubt: 0,
            whom: late.map_or(Whom::Nobody, Whom::One),
            left: i64::MAX,
            group: 0,
            looked: None,
        }
    }
}

impl Lost {
    /// A loss to nobody known.
    pub fn new(pattern: PatternId, severity: i64) -> Lost {
        Loss::sure(pattern, severity, None).into()
    }

    /// These losses of a wait, one after another since it began, as far as the program looked
    /// meanwhile: one for each place of looks.
    pub fn polled(losses: &[Lost], since: i64, episode: &Episode) -> Vec<Lost> {
        let mut moment = since;
        let polled = losses.iter().flat_map(|lost| {
            let begin = moment;
            moment = begin.saturating_add(lost.severity);
            let parts = episode.parts();
            parts.map(move |part| Lost::of_looks(lost, (begin, moment), part, episode.beside))
        });
        polled.collect()
    }

    /// A loss as far as looks were made at one place in its time, ns.
    fn of_looks(
        lost: &Lost,
        (since, until): (i64, i64),
        (elsewhere, looks): (u32, &Episode),
        beside: bool,
    ) -> Lost {
        let severity = looks.before(until) - looks.before(since);
        let part = |share: i64| {
            let product = i128::from(share) * i128::from(severity);
            (product / i128::from(lost.severity.max(1))) as i64
        };
        let shares = lost
            .shares
            .iter()
            .map(|(share, late)| (part(*share), *late));
        Lost {
            pattern: lost.pattern.polled(),
            severity,
            doubt: part(lost.doubt),
            shares: shares.collect(),
            looked: Some(Looked {
                since,
                until,
                beside,
                elsewhere,
            }),
            ..lost.clone()
        }
    }

    /// The loss to charge.
    pub fn as_loss(&self) -> Loss<'_> {
        Loss {
            pattern: self.pattern,
            severity: self.severity,
            doubt: self.doubt,
            whom: match (&self.late, &self.shares[..]) {
                (Some(late), _) => Whom::One(late),
                (None, []) => Whom::Nobody,
                (None, shares) => Whom::Several(shares),
            },
            left: self.left,
            group: self.group,
            looked: self.looked,
        }
    }
}

impl From<Loss<'_>> for Lost {
    fn from(loss: Loss<'_>) -> Lost {
        let (late, shares) = match loss.whom {
            Whom::Nobody => (None, Vec::new()),
            Whom::One(late) => (Some(*late), Vec::new()),
            Whom::Several(shares) => (None, shares.to_vec()),
        };
        Lost {
            pattern: loss.pattern,
            severity: loss.severity,
            doubt: loss.doubt,
            late,
            shares,
            left: loss.left,
            group: loss.group,
            looked: loss.looked,
        }
    }
}
