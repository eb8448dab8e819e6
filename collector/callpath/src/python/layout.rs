//! Offsets of the fields read, by version of CPython.
//!
//! Offsets in bytes, taken with `offsetof` from the headers (with
//! `Py_BUILD_CORE`) of releases 3.9.18, 3.10.13, 3.11.2, 3.11.7, 3.12.1 and
//! 3.13.0 on 64-bit Linux. Layouts do not change within a minor release.

/// The layout of one minor release.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    minor: u32,
    /// `PyThreadState`: the current frame, or the `_PyCFrame` that points to it.
    pub(super) thread_frame: usize,
    /// `_PyCFrame.current_frame`, in versions with this intermediate.
    pub(super) cframe_frame: Option<usize>,
    /// Frame: the caller's frame.
    pub(super) previous: usize,
    /// Frame: the code object.
    pub(super) code: usize,
    /// Frame: the current instruction.
    pub(super) instruction: usize,
    pub(super) instruction_is: Instruction,
    /// Frame: its owner, with the value of the interpreter's own frames
    /// (`FRAME_OWNED_BY_CSTACK`), which have no code of the program.
    pub(super) owner: Option<(usize, u8)>,
    /// `PyCodeObject.co_firstlineno`, an `int`.
    pub(super) first_line: usize,
    /// `PyCodeObject.co_filename`.
    pub(super) file: usize,
    /// `PyCodeObject.co_qualname`, `co_name` before 3.11.
    pub(super) name: usize,
    /// Size of `PyASCIIObject`: the text of an ASCII string follows it.
    pub(super) ascii: usize,
    /// Size of `PyCompactUnicodeObject`: the text of other strings follows it.
    pub(super) wide: usize,
}

/// How a frame states the current instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// A number (`int`) of units of this many bytes.
    Number(i32),
    /// A pointer into the code, which starts at this offset of the code object.
    Pointer(usize),
}

static LAYOUTS: [Layout; 5] = [
    Layout {
        minor: 9,
        thread_frame: 24,
        cframe_frame: None,
        previous: 24,
        code: 32,
        instruction: 104,
        instruction_is: Instruction::Number(1),
        owner: None,
        first_line: 40,
        file: 104,
        name: 112,
        ascii: 48,
        wide: 72,
    },
    Layout {
        minor: 10,
        thread_frame: 24,
        cframe_frame: None,
        previous: 24,
        code: 32,
        instruction: 96,
        instruction_is: Instruction::Number(2),
        owner: None,
        first_line: 40,
        file: 104,
        name: 112,
        ascii: 48,
        wide: 72,
    },
    Layout {
        minor: 11,
        thread_frame: 56,
        cframe_frame: Some(8),
        previous: 48,
        code: 32,
        instruction: 56,
        instruction_is: Instruction::Pointer(184),
        owner: None,
        first_line: 72,
        file: 112,
        name: 128,
        ascii: 48,
        wide: 72,
    },
    Layout {
        minor: 12,
        thread_frame: 56,
        cframe_frame: Some(0),
        previous: 8,
        code: 0,
        instruction: 56,
        instruction_is: Instruction::Pointer(192),
        owner: Some((70, 3)),
        first_line: 68,
        file: 112,
        name: 128,
        ascii: 40,
        wide: 56,
    },
    Layout {
        minor: 13,
        thread_frame: 72,
        cframe_frame: None,
        previous: 8,
        code: 0,
        instruction: 56,
        instruction_is: Instruction::Pointer(200),
        owner: Some((70, 3)),
        first_line: 68,
        file: 112,
        name: 128,
        ascii: 40,
        wide: 56,
    },
];

impl Layout {
    /// The layout for a text of `Py_GetVersion`, such as `3.11.2 (main, ...) [GCC 12.2.0]`.
    /// Pre-releases and builds without the GIL have other layouts and are not supported.
    pub(super) fn of(version: &str) -> Option<&'static Self> {
        let (number, rest) = version.split_once(' ')?;
        let number = number.strip_suffix('+').unwrap_or(number);
        let mut parts = number.split('.').map(str::parse::<u32>);
        let (Some(Ok(3)), Some(Ok(minor)), Some(Ok(_)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        if rest.contains("free-threading") {
            return None;
        }
        LAYOUTS.iter().find(|layout| layout.minor == minor)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn releases_are_known_and_others_are_not() {
        let minor = |version| Layout::of(version).map(|layout| layout.minor);
        assert_eq!(minor("3.11.2 (main, Apr 28 2025) [GCC 12.2.0]"), Some(11));
        assert_eq!(minor("3.9.18+ (heads/3.9) [GCC]"), Some(9));
        assert_eq!(minor("3.13.0rc2 (main) [GCC]"), None);
        assert_eq!(
            minor("3.13.0 experimental free-threading build (main) [GCC]"),
            None
        );
        assert_eq!(minor("3.14.0 (main) [GCC]"), None);
        assert_eq!(minor("2.7.18 (default) [GCC]"), None);
        assert_eq!(minor(""), None);
    }
}
