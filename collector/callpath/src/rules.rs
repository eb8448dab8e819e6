//! The step from a frame to its caller, read from `.eh_frame`.
//!
//! Only the stack pointer and the frame pointer are kept: return addresses need no more.
//! Besides the usual forms this handles those that GCC writes for functions that align their
//! stack (vectorised code, `main` of Fortran programs). Such a function saves its caller's
//! stack pointer in the frame (`DW_OP_breg6 n, DW_OP_deref`), and the frame pointer's slot is
//! relative to the frame pointer.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection,
    UnwindTableRow, X86_64,
};

use crate::modules::{Module, mapped_bytes};

type Slice = EndianSlice<'static, NativeEndian>;

/// The caller's stack pointer (the canonical frame address, CFA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cfa {
    /// Stack pointer plus offset.
    Sp(i64),
    /// Frame pointer plus offset.
    Bp(i64),
    /// The word at frame pointer plus offset, plus the second offset.
    SavedAt(i64, i64),
}

/// The caller's frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerBp {
    /// Not changed.
    Same,
    /// Stored at the CFA plus offset.
    BelowCfa(i64),
    /// Stored at this frame's frame pointer plus offset.
    NearBp(i64),
    /// Not recoverable.
    Lost,
}

/// A step from one frame to its caller. The return address is at the CFA - 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The caller's registers.
    Step(Cfa, CallerBp),
    /// The outermost frame, according to the tables.
    Outermost,
    /// No tables, or an unsupported form.
    Unknown,
}

/// Storage on the heap: a thread's stack may be small.
struct Storage;

impl UnwindContextStorage<usize> for Storage {
    type Rules = Vec<(Register, RegisterRule<usize>)>;
    type Stack = Vec<UnwindTableRow<usize, Self>>;
}

/// Reads rules, and keeps memory for reuse.
pub(crate) struct RuleReader {
    context: UnwindContext<usize, Storage>,
}

impl RuleReader {
    pub(crate) fn new() -> Self {
        Self {
            context: UnwindContext::new_in(),
        }
    }

    /// The rule for the instruction at `pc`.
    ///
    /// # Safety
    /// `module` is mapped and stays so for the call.
    pub(crate) unsafe fn rule(&mut self, module: &Module, pc: u64) -> Rule {
        // SAFETY: passed on.
        unsafe { self.read(module, pc) }.unwrap_or(Rule::Unknown)
    }

    unsafe fn read(&mut self, module: &Module, pc: u64) -> Option<Rule> {
        if module.eh_frame_hdr.is_empty() || module.eh_segment.is_empty() {
            return None;
        }
        // All bases are run-time addresses. Values decoded from the tables, which are relative
        // to their own position, are then run-time addresses too.
        let hdr_bases = BaseAddresses::default().set_eh_frame_hdr(module.eh_frame_hdr.start);
        // SAFETY: part of a mapped module.
        let hdr_bytes: &'static [u8] =
            unsafe { mapped_bytes(&(module.eh_frame_hdr.start..module.eh_segment.end)) };
        let hdr = EhFrameHdr::new(hdr_bytes, NativeEndian)
            .parse(&hdr_bases, 8)
            .ok()?;
        let eh_frame_start = hdr.eh_frame_ptr().direct().ok()?;
        if !module.eh_segment.contains(&eh_frame_start) {
            return None;
        }
        // SAFETY: as above. The section's end is not known at run time, so the segment's end
        // bounds it.
        let bytes: &'static [u8] =
            unsafe { mapped_bytes(&(eh_frame_start..module.eh_segment.end)) };
        let mut eh_frame: EhFrame<Slice> = EhFrame::new(bytes, NativeEndian);
        eh_frame.set_address_size(8);
        let bases = hdr_bases.set_eh_frame(eh_frame_start);
        let fde = hdr
            .table()?
            .fde_for_address(&eh_frame, &bases, pc, EhFrame::cie_from_offset)
            .ok()?;
        let row = fde
            .unwind_info_for_address(&eh_frame, &bases, &mut self.context, pc)
            .ok()?;
        match row.register(X86_64::RA) {
            Some(RegisterRule::Offset(-8)) => {}
            None | Some(RegisterRule::Undefined) => return Some(Rule::Outermost),
            _ => return None,
        }
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => match *register {
                X86_64::RSP => Cfa::Sp(*offset),
                X86_64::RBP => Cfa::Bp(*offset),
                _ => return None,
            },
            CfaRule::Expression(expression) => saved_cfa(&operations(expression, &eh_frame)?)?,
        };
        let bp = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => CallerBp::Same,
            Some(RegisterRule::Offset(offset)) => CallerBp::BelowCfa(offset),
            Some(RegisterRule::Expression(expression)) => {
                match operations(&expression, &eh_frame)?.as_slice() {
                    [Op::Register(X86_64::RBP, offset)] => CallerBp::NearBp(*offset),
                    _ => CallerBp::Lost,
                }
            }
            _ => CallerBp::Lost,
        };
        Some(Rule::Step(cfa, bp))
    }
}

/// The supported operations of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Register(Register, i64),
    Deref,
    Plus(i64),
}

fn operations(expression: &UnwindExpression<usize>, section: &EhFrame<Slice>) -> Option<Vec<Op>> {
    let encoding = gimli::Encoding {
        address_size: 8,
        format: gimli::Format::Dwarf32,
        version: 4,
    };
    let mut bytes = expression.get(section).ok()?.operations(encoding);
    let mut found = Vec::new();
    while let Some(operation) = bytes.next().ok()? {
        found.push(match operation {
            Operation::RegisterOffset {
                register, offset, ..
            } => Op::Register(register, offset),
            Operation::Deref { size: 8, .. } => Op::Deref,
            Operation::PlusConstant { value } => Op::Plus(i64::try_from(value).ok()?),
            _ => return None,
        });
    }
    Some(found)
}

fn saved_cfa(operations: &[Op]) -> Option<Cfa> {
    match *operations {
        [Op::Register(X86_64::RBP, offset), Op::Deref] => Some(Cfa::SavedAt(offset, 0)),
        [Op::Register(X86_64::RBP, offset), Op::Deref, Op::Plus(add)] => {
            Some(Cfa::SavedAt(offset, add))
        }
        [Op::Register(X86_64::RBP, offset)] => Some(Cfa::Bp(offset)),
        [Op::Register(X86_64::RSP, offset)] => Some(Cfa::Sp(offset)),
        _ => None,
    }
}
