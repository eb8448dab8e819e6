//! The control block: what the user wants of a recording that is under way. Layout as in `FORMAT.md`.
//!
//! One file of the trace directory has a slot for each rank. The collector maps the page with its own
//! slot and only reads; whoever steers writes a slot as a whole. The sequence number of a slot is odd
//! meanwhile, and another one afterwards.

use std::fs::{File, OpenOptions};
use std::io::{self, Error};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::{Mmap, MmapOptions};

use crate::PRIVATE_FILE;
use crate::block::PAGE;
use crate::calls;
use crate::mapped::Mapped;

/// The file with the control block.
pub const CONTROL_FILE: &str = "control";
/// Most calls that can be left out.
pub const MOST_LEFT_OUT: usize = (WORDS - 3) * 4;
/// Deepest call path.
pub const DEEPEST: u8 = 128;
/// Most samples per second.
pub const MOST_HZ: u16 = 10_000;

/// First bytes of the file.
const MAGIC: [u8; 8] = *b"LGCTRL1\x1a";
/// Bytes that are read of the header.
const HEAD: usize = 32;
/// The header's page.
const HEADER: u64 = PAGE as u64;
/// Words of a slot.
const WORDS: usize = 32;
/// Bytes of a slot.
const SLOT: usize = WORDS * 8;

type Words = [u64; WORDS];

/// What is kept of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Detail {
    /// Every call.
    Trace = 1,
    /// The profile, and what calls of other ranks may match.
    Profile = 2,
    /// What calls of other ranks may match.
    Paused = 3,
}

impl Detail {
    fn of(number: u64) -> Option<Detail> {
        [Detail::Trace, Detail::Profile, Detail::Paused]
            .into_iter()
            .find(|&detail| detail as u64 == number)
    }

    fn text(self) -> &'static str {
        match self {
            Detail::Trace => "trace",
            Detail::Profile => "profile only",
            Detail::Paused => "paused",
        }
    }
}

/// What the user wants of a rank. `None`: as it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// What is kept of calls.
    pub detail: Option<Detail>,
    /// Changes whenever that is said, though it may be the same: the program may have said something else
    /// since.
    pub said: bool,
    /// Most frames of a call path, up to [`DEEPEST`].
    pub depth: Option<u8>,
    /// Samples per second, up to [`MOST_HZ`]; 0 = none.
    pub sample_hz: Option<u16>,
    /// Numbers of calls of which only what other ranks' calls may match is kept, ascending; at most
    /// [`MOST_LEFT_OUT`].
    pub left_out: Vec<u16>,
}

impl Wish {
    /// As words of a slot; the first one stays for the sequence number.
    fn words(&self) -> Words {
        let mut words = [0; WORDS];
        let plus_one = |value: Option<u64>| value.map_or(0, |value| value + 1);
        words[1] = self.detail.map_or(0, |detail| detail as u64)
            | u64::from(self.said) << 7
            | plus_one(self.depth.map(|depth| depth.min(DEEPEST).into())) << 8
            | plus_one(self.sample_hz.map(u64::from)) << 16;
        for (at, &number) in self.left_out.iter().take(MOST_LEFT_OUT).enumerate() {
            words[2 + at / 4] |= u64::from(number) << (16 * (at % 4));
        }
        words[WORDS - 1] = check(&words);
        words
    }

    /// Of the words of a slot; `None`: they make no sense.
    fn of(words: &Words) -> Option<Wish> {
        if words[1..].iter().all(|&word| word == 0) {
            return Some(Wish::default());
        }
        if words[WORDS - 1] != check(words) {
            return None;
        }
        let said = words[1] >> 7 & 1 != 0;
        let detail = match words[1] & 0x7f {
            0 => None,
            number => Some(Detail::of(number)?),
        };
        let depth = (words[1] >> 8 & 0xff)
            .checked_sub(1)
            .map(|depth| depth as u8);
        let sample_hz = (words[1] >> 16).checked_sub(1);
        let numbers = words[2..WORDS - 1].iter();
        let numbers = numbers.flat_map(|word| (0..4).map(move |at| (word >> (16 * at)) as u16));
        let left_out: Vec<u16> = numbers.take_while(|&number| number != 0).collect();
        let is_sound = depth.is_none_or(|depth| depth <= DEEPEST)
            && sample_hz.is_none_or(|hz| hz <= u64::from(MOST_HZ))
            && left_out
                .iter()
                .all(|&number| calls::position(number).is_some());
        is_sound.then_some(Wish {
            detail,
            said,
            depth,
            sample_hz: sample_hz.map(|hz| hz as u16),
            left_out,
        })
    }

    /// What changes from `before` to this.
    pub fn changes<'a>(&'a self, before: &'a Wish) -> impl Iterator<Item = Change> + 'a {
        let differs = |is: bool, change: Change| is.then_some(change);
        let only = |a: &'a Wish, b: &'a Wish| {
            let numbers = a.left_out.iter().copied();
            numbers.filter(|number| !b.left_out.contains(number))
        };
        [
            differs(
                (self.detail, self.said) != (before.detail, before.said),
                Change::Detail(self.detail),
            ),
            differs(self.depth != before.depth, Change::Depth(self.depth)),
            differs(
                self.sample_hz != before.sample_hz,
                Change::SampleHz(self.sample_hz),
            ),
        ]
        .into_iter()
        .flatten()
        .chain(only(self, before).map(Change::LeftOut))
        .chain(only(before, self).map(Change::TakenIn))
    }

    /// In words.
    pub fn text(&self) -> String {
        let none = Wish {
            said: self.said,
            ..Wish::default()
        };
        let parts: Vec<String> = self.changes(&none).map(|change| change.text()).collect();
        match parts.is_empty() {
            true => "as it was started".to_owned(),
            false => parts.join(", "),
        }
    }
}

fn check(words: &Words) -> u64 {
    let salt = u64::from_le_bytes(MAGIC);
    let add = |sum: u64, word: &u64| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23)
    };
    words[1..WORDS - 1].iter().fold(salt, add)
}

/// A change that a rank has seen: the parameter of a record of [`STEER`](calls::user::STEER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// What is kept of calls.
    Detail(Option<Detail>),
    /// Most frames of a call path.
    Depth(Option<u8>),
    /// Samples per second.
    SampleHz(Option<u16>),
    /// A call that is left out from now on.
    LeftOut(u16),
    /// One that is not left out any more.
    TakenIn(u16),
    /// The slot makes no sense, or the file was cut off: all goes on as it was.
    Refused,
}

impl Change {
    /// As a parameter: the kind in the high half, in the low one the value plus one, 0 = as it was
    /// started.
    pub fn parameter(self) -> i64 {
        let value = |value: Option<i64>| value.map_or(0, |value| value + 1);
        let (kind, value) = match self {
            Change::Detail(detail) => (1, value(detail.map(|detail| detail as i64))),
            Change::Depth(depth) => (2, value(depth.map(i64::from))),
            Change::SampleHz(hz) => (3, value(hz.map(i64::from))),
            Change::LeftOut(number) => (4, value(Some(number.into()))),
            Change::TakenIn(number) => (5, value(Some(number.into()))),
            Change::Refused => (6, 0),
        };
        kind << 32 | value
    }

    /// Of a parameter; `None`: it is none.
    pub fn of(parameter: i64) -> Option<Change> {
        let value = (parameter & 0xffff_ffff)
            .checked_sub(1)
            .filter(|&value| value >= 0);
        let number = |value: Option<i64>| u16::try_from(value?).ok();
        match parameter >> 32 {
            1 => Some(Change::Detail(match value {
                None => None,
                Some(number) => Some(Detail::of(number as u64)?),
            })),
            2 => Some(Change::Depth(
                value.and_then(|value| u8::try_from(value).ok()),
            )),
            3 => Some(Change::SampleHz(number(value))),
            4 => Some(Change::LeftOut(number(value)?)),
            5 => Some(Change::TakenIn(number(value)?)),
            6 => Some(Change::Refused),
            _ => None,
        }
    }

    /// In words.
    pub fn text(self) -> String {
        let as_started = |what: &str| format!("{what} as it was started");
        match self {
            Change::Detail(None) => as_started("calls"),
            Change::Detail(Some(detail)) => detail.text().to_owned(),
            Change::Depth(None) => as_started("depth of call paths"),
            Change::Depth(Some(depth)) => format!("call paths of {depth} at most"),
            Change::SampleHz(None) => as_started("sampling"),
            Change::SampleHz(Some(0)) => "no samples".to_owned(),
            Change::SampleHz(Some(hz)) => format!("{hz} samples per second"),
            Change::LeftOut(number) => format!("without {}", calls::name(number)),
            Change::TakenIn(number) => format!("with {}", calls::name(number)),
            Change::Refused => "a change that makes no sense was refused".to_owned(),
        }
    }
}

/// Where the slot of a rank begins.
fn slot(rank: u32) -> u64 {
    HEADER + u64::from(rank) * SLOT as u64
}

/// Size of the file.
fn size(ranks: u32) -> u64 {
    slot(ranks).next_multiple_of(HEADER)
}

/// Makes the block for a run, unless there is one. It appears complete or not at all. `draft` is a
/// name beside it that nobody else uses.
///
/// # Errors
/// The system's error.
#[expect(clippy::disallowed_methods, reason = "a new file")]
pub fn create(path: &Path, draft: &Path, run_id: [u8; 16], ranks: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE_FILE);
    let made = options.open(draft).and_then(|file| {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&MAGIC);
        head[8..24].copy_from_slice(&run_id);
        head[24..28].copy_from_slice(&ranks.to_le_bytes());
        head[28..].copy_from_slice(&(SLOT as u32).to_le_bytes());
        file.set_len(size(ranks))?;
        file.write_all_at(&head, 0)
    });
    let linked = made.and_then(|()| std::fs::hard_link(draft, path));
    // A draft that cannot be removed does no harm.
    let _ = std::fs::remove_file(draft);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Opens a block that only this user can have written, and returns its head.
#[expect(
    clippy::disallowed_methods,
    reason = "through no link, and nothing but a regular file"
)]
fn open(path: &Path, to_write: bool) -> io::Result<(File, [u8; HEAD])> {
    let mut options = OpenOptions::new();
    options.read(true).write(to_write);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let refused = |why: &str| Err(Error::other(format!("{why}: not used for steering")));
    // Opening a device or a pipe may have side effects.
    let told = path.symlink_metadata()?;
    if !told.is_file() {
        return refused("it is no regular file");
    }
    let file = options.open(path)?;
    let told = file.metadata()?;
    // SAFETY: a plain system call.
    let user = unsafe { libc::geteuid() };
    if !told.is_file() {
        return refused("it is no regular file");
    }
    if told.uid() != user {
        return refused("it belongs to another user");
    }
    if told.mode() & 0o022 != 0 {
        return refused("others may write it");
    }
    let mut head = [0; HEAD];
    if told.len() < HEADER || file.read_exact_at(&mut head, 0).is_err() || head[..8] != MAGIC {
        return refused("it is no control block");
    }
    let ranks = ranks(&head);
    if head[28..] != (SLOT as u32).to_le_bytes() || told.len() != size(ranks) {
        return refused("its size is not that of a control block");
    }
    Ok((file, head))
}

fn ranks(head: &[u8; HEAD]) -> u32 {
    u32::from_le_bytes([head[24], head[25], head[26], head[27]])
}

/// The slot of a rank, mapped by the rank itself.
#[derive(Debug)]
pub struct ControlSlot {
    map: Mapped<Mmap>,
    /// Position of the slot in the map.
    at: usize,
}

impl ControlSlot {
    /// Maps it.
    ///
    /// # Errors
    /// There is none of this run; what is there may come from somebody else.
    pub fn open(path: &Path, run_id: [u8; 16], rank: u32) -> io::Result<ControlSlot> {
        let (file, head) = open(path, false)?;
        if head[8..24] != run_id || rank >= ranks(&head) {
            return Err(Error::other("it is of another run: not used for steering"));
        }
        let page = slot(rank) / HEADER * HEADER;
        // SAFETY: whoever changes the file meanwhile does so by words that are read as such, and a
        // shorter file is what `Mapped` is for.
        let map = unsafe { MmapOptions::new().offset(page).len(PAGE).map(&file)? };
        Ok(ControlSlot {
            map: Mapped::new(map),
            at: (slot(rank) - page) as usize,
        })
    }

    fn word(&self, at: usize) -> u64 {
        let word = self.map[self.at + 8 * at..].as_ptr().cast_mut().cast();
        // SAFETY: an aligned word of a page that stays mapped; others only store whole words.
        unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Relaxed)
    }

    /// The sequence number of what is wanted; it is odd while that is written. `None`: the file was cut
    /// off.
    pub fn sequence(&self) -> Option<u32> {
        let sequence = self.word(0) as u32;
        (!self.map.is_cut_off()).then_some(sequence)
    }

    /// What is wanted with this number. `None`: that is being changed again.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn wish(&self, sequence: u32) -> Option<Result<Wish, ()>> {
        fence(Ordering::Acquire);
        let words = std::array::from_fn(|at| self.word(at));
        fence(Ordering::Acquire);
        let is_whole = sequence.is_multiple_of(2) && self.sequence() == Some(sequence);
        is_whole.then(|| Wish::of(&words).ok_or(()))
    }
}

/// The block, for whoever steers.
#[derive(Debug)]
pub struct Control {
    file: File,
    /// Number of ranks.
    pub ranks: u32,
    /// The run that it is of.
    pub run_id: [u8; 16],
}

impl Control {
    /// Opens the block of a trace directory. Nobody else steers until this is dropped.
    ///
    /// # Errors
    /// There is none, or what is there may come from somebody else; somebody steers now.
    pub fn open(directory: &Path) -> Result<Control, (PathBuf, io::Error)> {
        let path = directory.join(CONTROL_FILE);
        let (file, head) = open(&path, true).map_err(|error| (path.clone(), error))?;
        // SAFETY: a plain system call on an open file.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = Error::other("another laggard steers at this moment: try again");
            return Err((path, error));
        }
        let mut run_id = [0; 16];
        run_id.copy_from_slice(&head[8..24]);
        Ok(Control {
            file,
            ranks: ranks(&head),
            run_id,
        })
    }

    fn words(&self, rank: u32) -> io::Result<Words> {
        let mut bytes = [0; SLOT];
        self.file.read_exact_at(&mut bytes, slot(rank))?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(std::array::from_fn(|at| u64::from_le_bytes(words[at])))
    }

    /// What is wanted of a rank, and its number. What makes no sense counts as nothing.
    ///
    /// # Errors
    /// The system's error.
    pub fn wish(&self, rank: u32) -> io::Result<(u32, Wish)> {
        let words = self.words(rank)?;
        Ok((words[0] as u32, Wish::of(&words).unwrap_or_default()))
    }

    /// Wants something else of a rank. Returns its number.
    ///
    /// # Errors
    /// The system's error.
    pub fn set(&self, rank: u32, wish: &Wish) -> io::Result<u32> {
        let at = slot(rank);
        // One that was left half written is odd.
        let odd = self.words(rank)?[0] as u32 | 1;
        self.file.write_all_at(&u64::from(odd).to_le_bytes(), at)?;
        let words = wish.words();
        let bytes: Vec<u8> = words[1..]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        self.file.write_all_at(&bytes, at + 8)?;
        // 0 is what nobody has changed.
        let even = match odd.wrapping_add(1) {
            0 => 2,
            even => even,
        };
        self.file.write_all_at(&u64::from(even).to_le_bytes(), at)?;
        Ok(even)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    const RUN: [u8; 16] = [7; 16];

    fn made(ranks: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(CONTROL_FILE);
        create(&path, &directory.path().join("draft"), RUN, ranks).expect("a block");
        (directory, path)
    }

    #[test]
    fn what_is_wanted_reaches_its_rank() {
        let (directory, path) = made(40);
        let mapped: Vec<_> = (0..40)
            .map(|rank| ControlSlot::open(&path, RUN, rank).expect("a slot"))
            .collect();
        assert!(mapped.iter().all(|slot| slot.sequence() == Some(0)));
        let control = Control::open(directory.path()).expect("the block");
        let wish = Wish {
            detail: Some(Detail::Profile),
            said: true,
            depth: Some(0),
            sample_hz: Some(MOST_HZ),
            left_out: vec![284, 600],
        };
        assert_eq!(control.set(17, &wish).expect("written"), 2);
        assert_eq!(control.wish(17).expect("it"), (2, wish.clone()));
        assert_eq!(mapped[17].sequence(), Some(2));
        assert_eq!(mapped[17].wish(2), Some(Ok(wish.clone())));
        assert_eq!(mapped[17].wish(4), None);
        assert_eq!(mapped[16].sequence(), Some(0));
        let (_, kind) = Control::open(directory.path()).expect_err("two at a time");
        assert!(kind.to_string().contains("another laggard"), "{kind}");
        let changes: Vec<_> = wish.changes(&Wish::default()).collect();
        assert_eq!(changes.len(), 5);
        for change in changes {
            assert_eq!(Change::of(change.parameter()), Some(change));
        }
        assert_eq!(
            wish.text(),
            "profile only, call paths of 0 at most, 10000 samples per second, without MPI_Pcontrol, \
             without posix_read"
                .replace("posix_read", calls::name(600))
        );
    }

    #[test]
    fn what_is_said_again_is_a_change() {
        let paused = Wish {
            detail: Some(Detail::Paused),
            ..Wish::default()
        };
        let again = Wish {
            said: true,
            ..paused.clone()
        };
        let changes: Vec<_> = again.changes(&paused).collect();
        assert_eq!(changes, [Change::Detail(Some(Detail::Paused))]);
        let [started, again_started] = [false, true].map(|said| Wish {
            said,
            ..Wish::default()
        });
        let changes: Vec<_> = again_started.changes(&started).collect();
        assert_eq!(changes, [Change::Detail(None)]);
        assert_eq!(again_started.text(), "as it was started");
        assert_eq!(Wish::of(&again.words()), Some(again));
        let too_deep = Wish {
            depth: Some(u8::MAX),
            ..Wish::default()
        };
        let kept = Wish::of(&too_deep.words()).expect("a wish");
        assert_eq!((kept.depth, kept.sample_hz), (Some(DEEPEST), None));
    }

    #[test]
    fn what_others_could_have_made_is_refused() {
        let (directory, path) = made(2);
        let refused = |path: &Path| {
            let refused = ControlSlot::open(path, RUN, 0).expect_err("refused");
            refused.to_string()
        };
        assert!(ControlSlot::open(&path, [8; 16], 0).is_err());
        assert!(ControlSlot::open(&path, RUN, 2).is_err());
        let other = directory.path().join("other");
        symlink(&path, &other).expect("a link");
        assert!(refused(&other).contains("no regular file"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("a mode");
        assert!(refused(&path).contains("others may write it"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(4097))
            .expect("cut off");
        assert!(refused(&path).contains("its size"));
        std::fs::write(&path, [1; 8192]).expect("written");
        assert!(refused(&path).contains("no control block"));
        // Only root can give a file away; for everybody else, this one is another user's.
        let given = match chown(&path, Some(12_345), None) {
            Ok(()) => path.as_path(),
            Err(_) => Path::new("/etc/passwd"),
        };
        assert!(refused(given).contains("another user"));
    }

    #[test]
    fn nonsense_is_no_wish() {
        assert_eq!(Wish::of(&[0; WORDS]), Some(Wish::default()));
        assert_eq!(Wish::of(&[3; WORDS]), None);
        let sealed = |at: usize, word: u64| {
            let mut words = [0; WORDS];
            words[at] = word;
            words[WORDS - 1] = check(&words);
            Wish::of(&words)
        };
        assert!(sealed(1, 2).is_some());
        assert_eq!(sealed(1, 9), None);
        assert_eq!(sealed(1, 0xff << 8), None);
        assert_eq!(sealed(1, 20_000 << 16), None);
        assert_eq!(sealed(2, 0xffff), None);
        assert_eq!(Change::of(99 << 32), None);
        assert_eq!(Change::of(-1), None);
    }
}
