//! The findings of a location while nobody needs them: many numbers are small or alike, so they are packed as messages are.

use crate::waits::spread::Spread;
use crate::waits::sums::{
    BySignature, Cause, CauseKey, Causes, Other, Parts, PatternNumber, Sums, Worst,
};
use crate::wire::packing::{Mask, Pack, Packer, Unpacker, entries};

entries! {
    /// One pattern of a signature: see [`Sums`].
    #[derive(Default)]
    Finding {
        signature: u32,
        pattern: PatternNumber,
        severity: u64,
        instances: u64,
        inter_host: u64,
        doubt: u64,
        /// Whether there is one, and which.
        rest: (u8, u64),
        worst: (u8, Worst),
        /// Numbers of entries in the lists.
        classes: u32,
        causes: u32,
    }
    /// See [`Cause`].
    #[derive(Default)]
    Party {
        key: CauseKey,
        sums: Parts,
        instances: u64,
        longest: Parts,
        /// Number of entries in the list.
        others: u32,
    }
}

fn flagged<T: Default>(value: Option<T>) -> (u8, T) {
    (value.is_some().into(), value.unwrap_or_default())
}

pub(super) fn pack(findings: BySignature) -> Vec<u8> {
    let (mut list, mut classes) = (Vec::new(), Vec::new());
    let (mut parties, mut all_others) = (Vec::new(), Vec::new());
    for (signature, patterns) in (0..).zip(findings) {
        for (pattern, sums) in patterns {
            // A location's own sums name no ranks.
            let Sums {
                severity,
                instances,
                inter_host,
                doubt,
                spread,
                rest,
                ranks: _,
                causes,
                worst,
            } = sums;
            let (first_class, first_party) = (classes.len(), parties.len());
            classes.extend(Vec::from(spread));
            for (key, cause) in causes {
                let Cause {
                    sums,
                    instances,
                    longest,
                    others,
                } = cause;
                parties.push(Party {
                    key,
                    sums,
                    instances,
                    longest,
                    others: others.len() as u32,
                });
                all_others.extend(others);
            }
            list.push(Finding {
                signature,
                pattern,
                severity,
                instances,
                inter_host,
                doubt,
                rest: flagged(rest),
                worst: flagged(worst),
                classes: (classes.len() - first_class) as u32,
                causes: (parties.len() - first_party) as u32,
            });
        }
    }
    let mut packer = Packer::default();
    packer.list(&list);
    packer.list::<(u16, u64)>(&classes);
    packer.list(&parties);
    packer.list::<Other>(&all_others);
    let mut bytes = packer.finish();
    bytes.shrink_to_fit();
    bytes
}

pub(super) fn unpack(bytes: &[u8]) -> BySignature {
    let mut unpacker = Unpacker::new(bytes);
    let list: Vec<Finding> = unpacker.list();
    let mut classes = unpacker.list::<(u16, u64)>().into_iter();
    let mut parties = unpacker.list::<Party>().into_iter();
    let mut others = unpacker.list::<Other>().into_iter();
    let mut findings = BySignature::new();
    let length = list.last().map_or(0, |last| last.signature as usize + 1);
    findings.resize_with(length, Vec::new);
    for same in list.chunk_by(|a, b| a.signature == b.signature) {
        let sums = same.iter().map(|finding| {
            let mut causes = Causes::default();
            for party in parties.by_ref().take(finding.causes as usize) {
                *causes.of(party.key) = Cause {
                    sums: party.sums,
                    instances: party.instances,
                    longest: party.longest,
                    others: others.by_ref().take(party.others as usize).collect(),
                };
            }
            let classes: Vec<_> = classes.by_ref().take(finding.classes as usize).collect();
            let sums = Sums {
                severity: finding.severity,
                instances: finding.instances,
                inter_host: finding.inter_host,
                doubt: finding.doubt,
                spread: Spread::from(classes),
                rest: (finding.rest.0 > 0).then_some(finding.rest.1),
                ranks: Vec::new(),
                causes,
                worst: (finding.worst.0 > 0).then_some(finding.worst.1),
            };
            (finding.pattern, sums)
        });
        findings[same[0].signature as usize] = sums.collect();
    }
    findings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cause() -> impl Strategy<Value = (CauseKey, Cause)> {
        let numbers = (any::<u32>(), any::<u16>(), any::<[u64; 2]>(), any::<u64>());
        let other = (any::<u16>(), any::<[u64; 2]>(), any::<u64>());
        let others = prop::collection::vec(other, 0..3);
        (numbers, others).prop_map(|((rank, number, path, time), others)| {
            let key = CauseKey {
                rank,
                thread: number / 3,
                operation: number,
                path,
            };
            let parts = |severity| Parts {
                severity,
                computation: time / 2,
                io: time % 7,
                ..Parts::default()
            };
            let others = others.into_iter().map(|(call, path, time)| Other {
                at: (call, path),
                time,
                blocked: time / 3,
                preempted: time % 5,
            });
            let cause = Cause {
                sums: parts(time),
                instances: time % 1000,
                longest: parts(time / 3),
                others: others.collect(),
            };
            (key, cause)
        })
    }

    fn sums() -> impl Strategy<Value = (PatternNumber, Sums)> {
        let lengths = prop::collection::vec(any::<u64>(), 0..100);
        let rest = (any::<PatternNumber>(), any::<u64>(), any::<Option<u64>>());
        let causes = prop::collection::vec(cause(), 0..20);
        (rest, lengths, causes).prop_map(|((pattern, severity, rest), lengths, causes)| {
            let mut sums = Sums {
                severity,
                instances: lengths.len() as u64,
                inter_host: severity / 2,
                doubt: severity / 5,
                rest,
                ..Sums::default()
            };
            lengths.iter().for_each(|&length| sums.spread.add(length));
            sums.worst = rest.map(|enter| Worst {
                severity,
                rank: pattern.into(),
                thread: 1,
                late: u32::MAX,
                enter: enter as i64,
                leave: -1,
            });
            for (key, cause) in causes {
                *sums.causes.of(key) = cause;
            }
            (pattern, sums)
        })
    }

    proptest! {
        #[test]
        fn findings_come_back(mut findings in prop::collection::vec(prop::collection::vec(sums(), 0..3), 0..6)) {
            let back = unpack(&pack(findings.clone()));
            while findings.last().is_some_and(Vec::is_empty) {
                findings.pop();
            }
            prop_assert_eq!(back, findings);
        }
    }
}
