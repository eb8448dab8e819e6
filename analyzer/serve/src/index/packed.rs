//! What is known of a location, in few bytes: numbers as differences to those of the entry before, small
//! ones in one byte.

use super::{
    ChangeAt, Checkpoint, KeptWait, LocationIndex, LooksAt, LostBy, MarkAt, RegionAt, Waits,
};

/// An entry as numbers.
trait Entry<const N: usize>: Copy {
    /// Numbers that differ little from those of the entry before.
    fn numbers(&self) -> [i64; N];
    fn of(numbers: [i64; N]) -> Self;
}

impl Entry<5> for Checkpoint {
    fn numbers(&self) -> [i64; 5] {
        let [a, b, c] = self.inside;
        [self.time, a, b, c, self.waiting]
    }

    fn of([time, a, b, c, waiting]: [i64; 5]) -> Self {
        Checkpoint {
            time,
            inside: [a, b, c],
            waiting,
        }
    }
}

impl Entry<5> for MarkAt {
    fn numbers(&self) -> [i64; 5] {
        let (number, chunk) = (self.number as i64, self.chunk as i64);
        [self.enter, number, chunk, self.region.into(), self.shortest]
    }

    fn of([enter, number, chunk, region, shortest]: [i64; 5]) -> Self {
        MarkAt {
            enter,
            number: number as u64,
            chunk: chunk as u64,
            region: region as u32,
            shortest,
        }
    }
}

impl Entry<2> for RegionAt {
    fn numbers(&self) -> [i64; 2] {
        [self.around.into(), self.signature.into()]
    }

    fn of([around, signature]: [i64; 2]) -> Self {
        RegionAt {
            around: around as u32,
            signature: signature as u32,
        }
    }
}

impl Entry<11> for KeptWait {
    /// Times are told since the begin of the wait.
    fn numbers(&self) -> [i64; 11] {
        [
            self.since,
            self.lost,
            self.until.wrapping_sub(self.since),
            self.enter.wrapping_sub(self.since),
            self.late_enter.wrapping_sub(self.since),
            self.late_location.into(),
            self.late_rank.into(),
            self.pattern.into(),
            self.late_call.into(),
            self.signature.into(),
            self.group as i64,
        ]
    }

    fn of(
        [
            since,
            lost,
            until,
            enter,
            late_enter,
            location,
            rank,
            pattern,
            call,
            signature,
            group,
        ]: [i64; 11],
    ) -> Self {
        KeptWait {
            since,
            lost,
            until: since.wrapping_add(until),
            enter: since.wrapping_add(enter),
            late_enter: since.wrapping_add(late_enter),
            late_location: location as u32,
            late_rank: rank as u32,
            pattern: pattern as u32,
            late_call: call as u32,
            signature: signature as u32,
            group: group as u64,
        }
    }
}

impl Entry<3> for LostBy {
    fn numbers(&self) -> [i64; 3] {
        [self.signature.into(), self.lost, self.between]
    }

    fn of([signature, lost, between]: [i64; 3]) -> Self {
        LostBy {
            signature: signature as u32,
            lost,
            between,
        }
    }
}

impl Entry<2> for LooksAt {
    fn numbers(&self) -> [i64; 2] {
        [self.place.into(), self.found]
    }

    fn of([place, found]: [i64; 2]) -> Self {
        LooksAt {
            place: place as u32,
            found,
        }
    }
}

impl Entry<2> for ChangeAt {
    fn numbers(&self) -> [i64; 2] {
        [self.time, self.parameter]
    }

    fn of([time, parameter]: [i64; 2]) -> Self {
        ChangeAt { time, parameter }
    }
}

/// The bytes of a location.
pub fn pack(of: &LocationIndex) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, of.measured.0);
    put(&mut bytes, of.measured.1);
    put_all(&mut bytes, &of.checkpoints);
    put_all(&mut bytes, &of.marks);
    put_all(&mut bytes, &of.regions);
    put_all(&mut bytes, of.waits.all());
    put_all(&mut bytes, &of.lost);
    put_all(&mut bytes, &of.looks);
    put_all(&mut bytes, &of.changes);
    bytes
}

/// The location of these bytes, if they are all of one.
pub fn unpack(mut bytes: &[u8]) -> Option<LocationIndex> {
    let bytes = &mut bytes;
    let of = LocationIndex {
        measured: (take(bytes)?, take(bytes)?),
        checkpoints: take_all(bytes)?,
        // Of a trace that is kept, all are.
        coarser: 0,
        marks: take_all(bytes)?,
        regions: take_all(bytes)?,
        waits: Waits::new(take_all(bytes)?),
        lost: take_all(bytes)?,
        looks: take_all(bytes)?,
        changes: take_all(bytes)?,
    };
    bytes.is_empty().then_some(of)
}

/// Seven bits in a byte, the last ones first; those of small numbers of either sign are few.
fn put(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = (number << 1 ^ number >> 63) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

fn take(bytes: &mut &[u8]) -> Option<i64> {
    let mut found = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        found |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((found >> 1) as i64 ^ -((found & 1) as i64));
        }
    }
    None
}

fn put_all<T: Entry<N>, const N: usize>(bytes: &mut Vec<u8>, entries: &[T]) {
    put(bytes, entries.len() as i64);
    let mut before = [0; N];
    for entry in entries {
        let numbers = entry.numbers();
        for (number, before) in numbers.iter().zip(before) {
            put(bytes, number.wrapping_sub(before));
        }
        before = numbers;
    }
}

fn take_all<T: Entry<N>, const N: usize>(bytes: &mut &[u8]) -> Option<Vec<T>> {
    let count = usize::try_from(take(bytes)?).ok()?;
    // Each number has a byte at least.
    if count > bytes.len() / N {
        return None;
    }
    let mut numbers = [0i64; N];
    let entries = (0..count).map(|_| {
        for number in &mut numbers {
            *number = number.wrapping_add(take(bytes)?);
        }
        Some(T::of(numbers))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let numbers = [0, 1, -1, 63, 64, -64, -65, 1 << 40, i64::MAX, i64::MIN];
        let checkpoints = numbers.map(|time| Checkpoint {
            time,
            inside: [time.wrapping_mul(3), 0, time],
            waiting: time,
        });
        let waits = numbers.map(|since| KeptWait {
            since,
            lost: since >> 8,
            until: since.wrapping_add(since >> 7),
            enter: since,
            late_enter: i64::MIN,
            late_location: since as u32,
            late_rank: u32::MAX,
            pattern: 3,
            late_call: 7,
            signature: since as u32,
            group: since as u64,
        });
        let of = LocationIndex {
            measured: (i64::MIN, i64::MAX),
            checkpoints: checkpoints.to_vec(),
            coarser: 0,
            marks: numbers
                .map(|enter| MarkAt {
                    enter,
                    region: enter as u32,
                    shortest: enter >> 3,
                    ..MarkAt::default()
                })
                .to_vec(),
            regions: vec![
                RegionAt {
                    around: 1,
                    signature: u32::MAX,
                };
                3
            ],
            waits: Waits::new(waits.to_vec()),
            lost: numbers
                .map(|lost| LostBy {
                    signature: lost as u32,
                    lost,
                    between: lost >> 1,
                })
                .to_vec(),
            looks: numbers
                .map(|found| LooksAt {
                    place: found as u32,
                    found,
                })
                .to_vec(),
            changes: Vec::new(),
        };
        let bytes = pack(&of);
        assert_eq!(unpack(&bytes), Some(of));
        for end in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..end]), None);
        }
        // A count that no bytes are behind, and a number that has no end.
        assert_eq!(unpack(&[0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f]), None);
        assert_eq!(unpack(&[0xff; 64]), None);
    }
}
