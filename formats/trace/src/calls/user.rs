//! Operations that are not library calls: regions of the program, and changes of the recording.
//!
//! In a trace all have one number, [`REGION`], and the parameter identifies the region. A
//! reader with an operation map gives each mapped region a number of its own. These numbers are
//! above those of all calls and never occur in a file.

use std::sync::RwLock;

use super::{Call, GenericType, NUMBERS, Shape};

/// The number of an instance of a region.
pub const REGION: u16 = 1000;

/// A region without an entry in an operation map.
static ANY: Call = Call {
    number: REGION,
    name: "region",
    generic: GenericType::User,
    shape: Shape::Single,
};

/// The number of a change that the user made while the program ran: its parameter is a
/// [`Change`](crate::Change).
pub const STEER: u16 = 1001;

static CHANGE: Call = Call {
    number: STEER,
    name: "laggard_steer",
    generic: GenericType::Setup,
    shape: Shape::Single,
};

/// Mapped operations, by number.
static NAMED: RwLock<Vec<&'static Call>> = RwLock::new(Vec::new());

/// The operation with this number, if it is a region of the program.
pub fn call(number: u16) -> Option<&'static Call> {
    match number {
        REGION => return Some(&ANY),
        STEER => return Some(&CHANGE),
        _ => {}
    }
    let at = usize::from(number).checked_sub(NUMBERS)?;
    let named = NAMED.read().ok()?;
    named.get(at).copied()
}

/// The number of the region with this name and type; `None` if there are too many. A number is
/// valid as long as the process.
pub fn number(name: &str, generic: GenericType) -> Option<u16> {
    let mut named = NAMED.write().ok()?;
    let known = named
        .iter()
        .find(|call| call.name == name && call.generic == generic);
    if let Some(known) = known {
        return Some(known.number);
    }
    let number = u16::try_from(NUMBERS + named.len()).ok()?;
    named.push(Box::leak(Box::new(Call {
        number,
        name: Box::leak(name.to_owned().into_boxed_str()),
        generic,
        shape: shape(generic),
    })));
    Some(number)
}

/// Dependencies between ranks in an operation of the program, derived from its type alone.
fn shape(generic: GenericType) -> Shape {
    match generic {
        GenericType::GroupSync => Shape::Barrier,
        GenericType::GroupComm => Shape::AllToAll,
        _ => Shape::Single,
    }
}

/// Names of the mapped operations; the first has the number [`NUMBERS`], and so on.
pub fn names() -> Vec<&'static str> {
    let named = NAMED.read();
    named.map_or_else(
        |_| Vec::new(),
        |named| named.iter().map(|call| call.name).collect(),
    )
}

/// Position in [`names`] of the region with this number; `None` if no region has it, which is
/// possible for a number from a file.
pub fn position(number: u16) -> Option<usize> {
    let at = usize::from(number).checked_sub(NUMBERS)?;
    let named = NAMED.read().ok()?;
    (at < named.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls;

    #[test]
    fn regions_have_numbers_of_their_own() {
        let spin = number("spin", GenericType::WaitOnValue).unwrap();
        let file = number("spin", GenericType::Io).unwrap();
        assert_ne!(spin, file);
        assert_eq!(number("spin", GenericType::WaitOnValue), Some(spin));
        let found = calls::call(spin).unwrap();
        assert_eq!((found.name, found.number), ("spin", spin));
        assert!(found.is_user() && !found.is_shmem() && !found.has_address());
        assert!(calls::position(spin).is_none() && calls::position(REGION).is_none());
        assert_eq!(names()[position(spin).unwrap()], "spin");
        assert_eq!(position(REGION), None);
        assert_eq!(calls::name(REGION), "region");
        assert!(calls::call(u16::MAX).is_none() && position(u16::MAX).is_none());
    }
}
