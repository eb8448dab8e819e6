//! What looks look at.

use laggard_trace::calls::{call, number};
use laggard_trace::{Event, PEER_ANY, Signature, TAG_ANY, flags};
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::intern::PathKey;

/// Operation, call path, and what is looked at.
type Place = (u16, PathKey, [u64; 2]);

/// What is looked at, if a look does not tell it, as in archives.
const UNKNOWN: [u64; 2] = [0, 0];

/// The place of a look; `event` has what differs from its signature.
fn place(signature: &Signature, path: PathKey, event: Option<&Event>) -> Place {
    let object = match signature.operation {
        number::MPI_Iprobe | number::MPI_Improbe if signature.group != 0 => {
            let receive = event.map_or(signature.receive, |event| event.receive(signature));
            let either = |flag, any, is| if signature.has(flag) { any } else { is };
            let peer = either(flags::ANY_SOURCE, PEER_ANY, receive.peer);
            let tag = either(flags::ANY_TAG, TAG_ANY, receive.tag);
            [
                signature.group,
                u64::from(peer as u32) << 32 | u64::from(tag as u32),
            ]
        }
        operation if call(operation).is_some_and(|c| c.has_address()) => {
            let address = event.and_then(|event| event.address);
            [address.unwrap_or(signature.parameter as u64), 0]
        }
        number::MPI_Win_test => [signature.group, 0],
        _ => UNKNOWN,
    };
    (signature.operation, path, object)
}

/// The places where looks of a location found nothing.
#[derive(Debug, Default)]
pub struct Places {
    numbers: FxHashMap<Place, u32>,
    /// Place of each signature that looks; `NONE` if no look there was in vain. Empty: none was.
    of_signatures: Vec<u32>,
}

impl Places {
    /// Takes in all signatures, those that are known already among them. `is_vain` tells of each by id whether its
    /// looks find nothing, if it looks. Returns a signature of looks in vain for each place that is new.
    pub fn know(
        &mut self,
        signatures: &[Signature],
        is_vain: impl Fn(usize) -> Option<bool>,
        path: impl Fn(usize) -> PathKey,
    ) -> Vec<u32> {
        let looks = signatures.iter().enumerate();
        let looks = looks.filter_map(|(id, signature)| Some((id, signature, is_vain(id)?)));
        let mut new = Vec::new();
        for (id, signature, _) in looks.clone().filter(|(.., is_vain)| *is_vain) {
            let next = self.numbers.len() as u32;
            let place = place(signature, path(id), None);
            if *self.numbers.entry(place).or_insert(next) == next {
                new.push(id as u32);
            }
        }
        if !self.numbers.is_empty() {
            self.of_signatures.clear();
            self.of_signatures.resize(signatures.len(), NONE);
            for (id, signature, _) in looks {
                let number = self.number(place(signature, path(id), None));
                self.of_signatures[id] = number.unwrap_or(NONE);
            }
        }
        new
    }

    /// The number of a place, or of looks there that do not tell at what.
    fn number(&self, place: Place) -> Option<u32> {
        let known = self.numbers.get(&place);
        let known = known.or_else(|| self.numbers.get(&(place.0, place.1, UNKNOWN)));
        known.copied()
    }

    /// The number of the place of a look; `NONE` if no look there was in vain.
    #[inline]
    pub fn of(
        &self,
        (id, signature): (u32, &Signature),
        path: impl FnOnce() -> PathKey,
        event: Option<&Event>,
    ) -> u32 {
        let number = match event {
            Some(event) if event.address.is_some() || event.receive_endpoint.is_some() => {
                self.number(place(signature, path(), Some(event)))
            }
            _ => self.of_signatures.get(id as usize).copied(),
        };
        number.unwrap_or(NONE)
    }

    /// Whether no look was in vain.
    pub fn is_empty(&self) -> bool {
        self.of_signatures.is_empty()
    }
}
