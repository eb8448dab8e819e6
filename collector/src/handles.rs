//! Values of recently used handles.

/// The values of the handles that a thread used recently.
///
/// The last handle is stored apart, next to the other data that each call reads: most programs
/// use one communicator and one datatype for a long time.
pub struct Handles<V> {
    last: Known<V>,
    /// By a hash of the handle.
    known: Box<[Known<V>]>,
}

#[derive(Clone, Copy)]
struct Known<V> {
    handle: usize,
    /// The epoch in which this was true; epochs begin at 1.
    epoch: u32,
    means: V,
}

const PLACES_LOG2: u32 = 6;

impl<V: Copy> Handles<V> {
    /// An empty table; `nothing` fills the free places.
    pub fn new(nothing: V) -> Self {
        let unknown = Known {
            handle: 0,
            epoch: 0,
            means: nothing,
        };
        Handles {
            last: unknown,
            known: vec![unknown; 1 << PLACES_LOG2].into_boxed_slice(),
        }
    }

    /// The value of a handle in this epoch.
    #[inline(always)]
    pub fn find(&mut self, handle: usize, epoch: u32) -> Option<V> {
        if self.last.handle != handle || self.last.epoch != epoch {
            let known = self.known[Self::place(handle)];
            if known.handle != handle || known.epoch != epoch {
                return None;
            }
            self.last = known;
        }
        Some(self.last.means)
    }

    /// Notes the value of a handle in this epoch.
    pub fn note(&mut self, handle: usize, epoch: u32, means: V) {
        self.last = Known {
            handle,
            epoch,
            means,
        };
        self.known[Self::place(handle)] = self.last;
    }

    #[inline(always)]
    fn place(handle: usize) -> usize {
        handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACES_LOG2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_means_what_it_meant_in_its_epoch() {
        let mut handles = Handles::new(0);
        assert_eq!(handles.find(0, 1), None);
        for handle in 0..200 {
            handles.note(handle, 1, handle * 10);
            assert_eq!(handles.find(handle, 1), Some(handle * 10));
        }
        let known = (0..200).filter_map(|handle| Some((handle, handles.find(handle, 1)?)));
        let known: Vec<_> = known.collect();
        assert!(known.len() > 30 && known.iter().all(|(handle, means)| *means == handle * 10));
        assert!((0..200).all(|handle| handles.find(handle, 2).is_none()));
    }
}
