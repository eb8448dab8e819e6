//! Operations that are no calls of a library: regions of the program.
//!
//! In a trace all have one number, [`REGION`]; which one it is stands in the parameter. A reader
//! that was told what a region is, by an operation map, gives it a number of its own, which is
//! above those of all calls and never in a file.

use std::sync::RwLock;

use super::{Call, GenericType, NUMBERS, Shape};

/// The number of an instance of a region.
pub const REGION: u16 = 1000;

/// A region of which nothing more is known.
static ANY: Call = Call {
    number: REGION,
    name: "region",
    generic: GenericType::User,
    shape: Shape::Single,
};

/// Operations that were named, by number.
static NAMED: RwLock<Vec<&'static Call>> = RwLock::new(Vec::new());

/// The operation with this number, if it is one of the program's.
pub fn call(number: u16) -> Option<&'static Call> {
    if number == REGION {
        return Some(&ANY);
    }
    let at = usize::from(number).checked_sub(NUMBERS)?;
    let named = NAMED.read().ok()?;
    named.get(at).copied()
}

/// The number of the region with this name and type, the same whenever it is asked for; `None`
/// if there are too many. It lasts as long as the process.
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

/// Who waits for whom in an operation of the program's own, of which nothing but the type is known.
fn shape(generic: GenericType) -> Shape {
    match generic {
        GenericType::GroupSync => Shape::Barrier,
        GenericType::GroupComm => Shape::AllToAll,
        _ => Shape::Single,
    }
}

/// What was named so far: the first one has the number [`NUMBERS`], and so on.
pub fn names() -> Vec<&'static str> {
    let named = NAMED.read();
    named.map_or_else(
        |_| Vec::new(),
        |named| named.iter().map(|call| call.name).collect(),
    )
}

/// The position in [`names`] of the region with this number; `None` if none was named so, as a
/// number in a file may not be.
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
