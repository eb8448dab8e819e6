//! Bytes that a collective moves, from the rows' buffers, counts and types.
//!
//! Only arguments that are significant at this rank are read; the others may be garbage.

use std::ffi::{c_int, c_void};

use crate::constants::constants;
use crate::ffi::MPI_Datatype;
use crate::stream::Stream;

/// This rank's role in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The collective has no root.
    Peer,
    /// The root.
    Root,
    /// Exchanges data with the root.
    Leaf,
    /// In the root's group of an intercommunicator, but not the root.
    Bystander,
}

/// The context of a volume.
pub struct Scope<'a> {
    /// Provides the sizes of datatypes.
    pub stream: &'a mut Stream,
    /// This rank's role.
    pub role: Role,
    /// Whether arguments not marked for a role are significant.
    pub plain: bool,
    /// Number of members that exchange data with this rank.
    pub parties: usize,
    /// Number of members of the local group.
    pub size: usize,
    /// This rank in the local group.
    pub rank: usize,
}

/// A buffer with counts and types.
pub trait Volume {
    /// Bytes sent or received by this rank.
    fn bytes(&self, scope: &mut Scope<'_>) -> u64;
    /// Whether the data is in the other buffer (`MPI_IN_PLACE`).
    fn is_in_place(&self) -> bool {
        false
    }
}

/// A buffer's address, constant or not.
pub trait Buffer: Copy {
    /// Whether it is `MPI_IN_PLACE`.
    fn is_in_place(&self) -> bool;
}

impl Buffer for *const c_void {
    #[inline(always)]
    fn is_in_place(&self) -> bool {
        std::ptr::eq(*self, constants().in_place)
    }
}

impl Buffer for *mut c_void {
    #[inline(always)]
    fn is_in_place(&self) -> bool {
        std::ptr::eq(*self, constants().in_place)
    }
}

/// Counts and types of a buffer.
#[derive(Clone, Copy)]
pub struct Plain {
    in_place: bool,
    extent: Extent,
}

#[derive(Clone, Copy)]
enum Extent {
    Nothing,
    One(c_int, MPI_Datatype),
    Each(c_int, MPI_Datatype),
    Many(*const c_int, MPI_Datatype),
    Local(*const c_int, MPI_Datatype),
    Own(*const c_int, MPI_Datatype),
    Typed(*const c_int, *const MPI_Datatype),
}

impl Volume for Plain {
    #[inline]
    fn bytes(&self, scope: &mut Scope<'_>) -> u64 {
        if self.in_place || !scope.plain {
            return 0;
        }
        match self.extent {
            Extent::Nothing => 0,
            Extent::One(count, datatype) => scope.stream.volume(i64::from(count), datatype),
            Extent::Each(count, datatype) => {
                let parties = scope.parties as i64;
                scope.stream.volume(i64::from(count) * parties, datatype)
            }
            Extent::Many(counts, datatype) => {
                let sum = sum(counts, scope.parties);
                scope.stream.volume(sum, datatype)
            }
            Extent::Local(counts, datatype) => {
                let sum = sum(counts, scope.size);
                scope.stream.volume(sum, datatype)
            }
            Extent::Own(counts, datatype) => {
                // SAFETY: the array has one count per member of the local group.
                let count = unsafe { *counts.add(scope.rank) };
                scope.stream.volume(i64::from(count), datatype)
            }
            Extent::Typed(counts, datatypes) => (0..scope.parties)
                // SAFETY: one count and one type per party. The type of an empty part may be
                // MPI_DATATYPE_NULL.
                .map(|i| unsafe { (*counts.add(i), datatypes.add(i)) })
                .filter(|&(count, _)| count > 0)
                .map(|(count, datatype)| {
                    // SAFETY: as above.
                    scope.stream.volume(i64::from(count), unsafe { *datatype })
                })
                .fold(0, u64::wrapping_add),
        }
    }

    #[inline(always)]
    fn is_in_place(&self) -> bool {
        self.in_place
    }
}

fn sum(counts: *const c_int, n: usize) -> i64 {
    if counts.is_null() {
        return 0;
    }
    // SAFETY: the MPI standard requires an array of `n` counts.
    unsafe { std::slice::from_raw_parts(counts, n) }
        .iter()
        .map(|&count| i64::from(count))
        .sum()
}

/// No data.
pub fn nothing() -> Plain {
    Plain {
        in_place: false,
        extent: Extent::Nothing,
    }
}

/// `count` elements.
pub fn one(buffer: impl Buffer, count: c_int, datatype: MPI_Datatype) -> Plain {
    Plain {
        in_place: buffer.is_in_place(),
        extent: Extent::One(count, datatype),
    }
}

/// `count` elements for each party.
pub fn each(buffer: impl Buffer, count: c_int, datatype: MPI_Datatype) -> Plain {
    Plain {
        in_place: buffer.is_in_place(),
        extent: Extent::Each(count, datatype),
    }
}

/// A count for each party.
pub fn many(buffer: impl Buffer, counts: *const c_int, datatype: MPI_Datatype) -> Plain {
    Plain {
        in_place: buffer.is_in_place(),
        extent: Extent::Many(counts, datatype),
    }
}

/// The sum of an array of counts, one per member of the local group.
pub fn local(counts: *const c_int, datatype: MPI_Datatype) -> Plain {
    Plain {
        in_place: false,
        extent: Extent::Local(counts, datatype),
    }
}

/// This rank's count in an array with one per member of the local group.
pub fn own(counts: *const c_int, datatype: MPI_Datatype) -> Plain {
    Plain {
        in_place: false,
        extent: Extent::Own(counts, datatype),
    }
}

/// A count and a type for each party.
pub fn typed(buffer: impl Buffer, counts: *const c_int, datatypes: *const MPI_Datatype) -> Plain {
    Plain {
        in_place: buffer.is_in_place(),
        extent: Extent::Typed(counts, datatypes),
    }
}

pub struct AtRoot(Plain);
pub struct NotAtRoot(Plain);
pub struct InPlace(Plain, Plain);

/// Significant at the root only.
pub fn at_root(volume: Plain) -> AtRoot {
    AtRoot(volume)
}

/// Significant at all but the root.
pub fn not_at_root(volume: Plain) -> NotAtRoot {
    NotAtRoot(volume)
}

/// The first volume, or the second if the first's data is in place.
pub fn or_in_place(volume: Plain, other: Plain) -> InPlace {
    InPlace(volume, other)
}

fn for_role(volume: &Plain, scope: &mut Scope<'_>, role: Role) -> u64 {
    if scope.role != role {
        return 0;
    }
    let plain = std::mem::replace(&mut scope.plain, true);
    let bytes = volume.bytes(scope);
    scope.plain = plain;
    bytes
}

impl Volume for AtRoot {
    fn bytes(&self, scope: &mut Scope<'_>) -> u64 {
        for_role(&self.0, scope, Role::Root)
    }
}

impl Volume for NotAtRoot {
    fn bytes(&self, scope: &mut Scope<'_>) -> u64 {
        for_role(&self.0, scope, Role::Leaf)
    }
}

impl Volume for InPlace {
    fn bytes(&self, scope: &mut Scope<'_>) -> u64 {
        if self.0.is_in_place() {
            self.1.bytes(scope)
        } else {
            self.0.bytes(scope)
        }
    }
}
