//! Unwinds one path and notes its dependencies.

use crate::cache::Check;
use crate::modules::{Role, Snapshot};
use crate::site::CallSite;
use crate::stack::Reader;

/// Frames read beyond the wanted depth: leading ones inside MPI, and those that show whether
/// only the start of the program follows.
const SLACK: usize = 32;

/// Result of unwinding.
pub(crate) struct Unwound {
    /// Return addresses, innermost first.
    pub(crate) frames: Vec<u64>,
    /// All words that `frames` depends on, in reading order.
    pub(crate) checks: Vec<Check>,
}

impl Unwound {
    pub(crate) const fn new() -> Self {
        Self {
            frames: Vec::new(),
            checks: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.checks.clear();
    }
}

/// Decides, frame by frame, how far to unwind, and then which frames to keep.
pub(crate) struct Extent<'a> {
    snapshot: &'a Snapshot,
    pub(crate) depth: usize,
    skipped: usize,
    /// Frames that are left out since they only run regions of OpenMP.
    between: usize,
    total: usize,
    inside_mpi: bool,
}

impl<'a> Extent<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, depth: usize) -> Self {
        Self {
            snapshot,
            depth,
            skipped: 0,
            between: 0,
            total: 0,
            inside_mpi: true,
        }
    }

    fn role(&self, ra: u64) -> Option<Role> {
        self.snapshot
            .find(ra.wrapping_sub(1))
            .map(|module| module.role)
    }

    /// Notes the next frame; returns whether to go on to its caller.
    pub(crate) fn goes_on(&mut self, ra: u64) -> bool {
        let module = self.snapshot.find(ra.wrapping_sub(1));
        let role = module.map(|module| module.role);
        self.total += 1;
        if self.inside_mpi && role == Some(Role::Mpi) {
            self.skipped += 1;
        } else if self.inside_mpi {
            self.inside_mpi = false;
        } else if module.is_some_and(|module| module.is_between()) {
            self.between += 1;
        }
        let kept = self.total - self.skipped - self.between;
        match role {
            // No code of the program or its libraries: unwinding ends.
            None => false,
            _ if self.total >= self.depth.saturating_add(SLACK) => false,
            // The C library calls back (qsort), or starts the program.
            Some(Role::System) => true,
            Some(_) => kept < self.depth,
        }
    }

    /// The frames to keep, of which at most `depth` make the path. Leading frames inside MPI are dropped. If the
    /// outermost frame was reached, so are the frames that start a program or a thread.
    pub(crate) fn kept<'f>(&self, frames: &'f [u64]) -> &'f [u64] {
        let skipped = if self.skipped < frames.len() {
            self.skipped
        } else {
            0
        };
        let mut kept = &frames[skipped..];
        match kept {
            [inner @ .., last] if !inner.is_empty() && is_program_entry(*last) => kept = inner,
            _ => {}
        }
        let system = |&ra: &u64| self.role(ra) == Some(Role::System);
        let inner = kept.iter().rposition(|ra| !system(ra)).map_or(1, |i| i + 1);
        &kept[..inner.min(kept.len())]
    }
}

/// Whether the address lies in `_start`, whose size is some 40 bytes.
fn is_program_entry(ra: u64) -> bool {
    // SAFETY: reads the auxiliary vector, always possible.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) };
    entry != 0 && ra > entry && ra - entry <= 64
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::Unwinder;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::collections::HashMap;
    use std::hash::BuildHasherDefault;

    use super::{CallSite, Check, Extent, Reader, Snapshot, Unwound};
    use crate::cache::BP;
    use crate::paths::ConstMap;
    use crate::rules::{CallerBp, Cfa, Rule, RuleReader};

    const MAX_RULES: usize = 1 << 14;

    /// Source of the current frame pointer value.
    #[derive(Clone, Copy)]
    enum Origin {
        /// Read there; nothing depends on it yet.
        Unchecked(u64),
        /// Already among the checks.
        Checked,
        Lost,
    }

    struct Registers<'a> {
        pc: u64,
        sp: u64,
        bp: u64,
        origin: Origin,
        stack: &'a Reader<'a>,
        checks: &'a mut Vec<Check>,
    }

    impl Registers<'_> {
        fn checked(&mut self, address: u64) -> Option<u64> {
            let value = self.stack.word(address)?;
            self.checks.push(Check { address, value });
            Some(value)
        }

        /// The frame pointer; notes that the path depends on it.
        fn bp(&mut self) -> Option<u64> {
            match self.origin {
                Origin::Unchecked(address) => self.checks.push(Check {
                    address,
                    value: self.bp,
                }),
                Origin::Checked => {}
                Origin::Lost => return None,
            }
            self.origin = Origin::Checked;
            Some(self.bp)
        }

        fn step(&mut self, cfa: Cfa, bp: CallerBp) -> Option<()> {
            let cfa = match cfa {
                Cfa::Sp(offset) => self.sp.checked_add_signed(offset)?,
                Cfa::Bp(offset) => self.bp()?.checked_add_signed(offset)?,
                Cfa::SavedAt(offset, add) => {
                    let address = self.bp()?.checked_add_signed(offset)?;
                    self.checked(address)?.checked_add_signed(add)?
                }
            };
            // Callers are above, by at least a return address.
            if cfa <= self.sp {
                return None;
            }
            let saved_at = match bp {
                CallerBp::Same => None,
                CallerBp::BelowCfa(offset) => cfa.checked_add_signed(offset),
                CallerBp::NearBp(offset) => self.bp()?.checked_add_signed(offset),
                CallerBp::Lost => {
                    self.origin = Origin::Lost;
                    None
                }
            };
            let ra = self.checked(cfa - 8)?;
            if let Some(address) = saved_at {
                match self.stack.word(address) {
                    Some(value) => {
                        self.bp = value;
                        self.origin = Origin::Unchecked(address);
                    }
                    None => self.origin = Origin::Lost,
                }
            }
            self.sp = cfa;
            self.pc = ra;
            (ra != 0).then_some(())
        }
    }

    /// Unwinds with the tables and remembers the rules it has read.
    pub(crate) struct Unwinder {
        rules: ConstMap<u64, Rule>,
        reader: Option<RuleReader>,
    }

    impl Unwinder {
        pub(crate) const fn new() -> Self {
            Self {
                rules: HashMap::with_hasher(BuildHasherDefault::new()),
                reader: None,
            }
        }

        /// Forgets all rules: other modules may be mapped now.
        pub(crate) fn clear(&mut self) {
            self.rules.clear();
        }

        /// # Safety
        /// All modules of `snapshot` that contain addresses on the stack are mapped.
        unsafe fn rule(&mut self, snapshot: &Snapshot, pc: u64) -> Rule {
            if let Some(&rule) = self.rules.get(&pc) {
                return rule;
            }
            let reader = self.reader.get_or_insert_with(RuleReader::new);
            let rule = match snapshot.find(pc) {
                // SAFETY: as the caller states.
                Some(module) => unsafe { reader.rule(module, pc) },
                None => Rule::Unknown,
            };
            if self.rules.len() >= MAX_RULES {
                self.rules.clear();
            }
            self.rules.insert(pc, rule);
            rule
        }

        /// Unwinds from `site` as far as `extent` asks for.
        ///
        /// # Safety
        /// `snapshot` is up to date: its modules that contain the addresses of live frames are
        /// mapped.
        pub(crate) unsafe fn unwind(
            &mut self,
            site: CallSite,
            snapshot: &Snapshot,
            stack: &Reader<'_>,
            extent: &mut Extent<'_>,
            out: &mut Unwound,
        ) {
            let mut registers = Registers {
                pc: site.ra,
                sp: site.sp,
                bp: site.bp,
                origin: Origin::Unchecked(BP),
                stack,
                checks: &mut out.checks,
            };
            loop {
                out.frames.push(registers.pc);
                if !extent.goes_on(registers.pc) {
                    return;
                }
                // A return address may be the first byte of the next function. The rule must be
                // that of the call before it.
                // SAFETY: as the caller states.
                match unsafe { self.rule(snapshot, registers.pc - 1) } {
                    Rule::Step(cfa, bp) if registers.step(cfa, bp).is_some() => {}
                    _ => return,
                }
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::Unwinder;

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use super::{CallSite, Check, Extent, Reader, Snapshot, Unwound};
    use crate::cache::BP;

    /// Address bits; pointer authentication uses the higher bits.
    const ADDRESS: u64 = (1 << 48) - 1;

    /// Follows the chain of frame records that the platform's compilers keep.
    pub(crate) struct Unwinder;

    impl Unwinder {
        pub(crate) const fn new() -> Self {
            Self
        }

        pub(crate) fn clear(&mut self) {}

        /// Unwinds from `site` as far as `extent` asks for.
        ///
        /// # Safety
        /// None needed here; the other architecture reads tables.
        pub(crate) unsafe fn unwind(
            &mut self,
            site: CallSite,
            _snapshot: &Snapshot,
            stack: &Reader<'_>,
            extent: &mut Extent<'_>,
            out: &mut Unwound,
        ) {
            let (mut ra, mut record) = (site.ra & ADDRESS, site.bp);
            let mut below = site.sp;
            let mut address = BP;
            loop {
                out.frames.push(ra);
                if !extent.goes_on(ra) || record < below {
                    return;
                }
                let (Some(next), Some(value)) = (stack.word(record), stack.word(record + 8)) else {
                    return;
                };
                out.checks.push(Check {
                    address,
                    value: record,
                });
                out.checks.push(Check {
                    address: record + 8,
                    value,
                });
                (address, below) = (record, record + 16);
                (ra, record) = (value & ADDRESS, next);
                if ra == 0 {
                    return;
                }
            }
        }
    }
}
