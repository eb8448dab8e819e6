//! Lines of instructions that belong to none: where compilers merge or move code, they say line 0. The
//! nearest instruction before it that has a line of the same function stands for it, else the nearest after it.

use addr2line::Loader;

/// How far lines are looked for, bytes.
const FARTHEST: u64 = 4096;
/// Most instructions that are looked at on each side.
const MOST: usize = 64;

/// The line that is nearest to an address without one, in the same file and function.
pub(super) fn line(loader: &Loader, offset: u64) -> Option<u32> {
    let function = function(loader, offset)?;
    let file = loader.find_location(offset).ok()??.file?;
    let between = |low: u64, high: u64| {
        let found = loader.find_location_range(low, high).ok();
        let found = found.into_iter().flatten();
        let known = found.filter_map(|(address, _, location)| {
            let line = location.line.filter(|line| *line > 0)?;
            (location.file == Some(file)).then_some((address, line))
        });
        known.collect::<Vec<_>>()
    };
    let is_same =
        |(address, _): &(u64, u32)| self::function(loader, *address) == Some(function.clone());
    let before = between(offset.saturating_sub(FARTHEST), offset);
    let mut before = before.into_iter().rev().take(MOST);
    let found = before.find(|row| row.0 <= offset && is_same(row));
    let found = found.or_else(|| {
        let after = between(offset, offset.saturating_add(FARTHEST));
        let mut after = after.into_iter().take(MOST);
        after.find(|row| row.0 > offset && is_same(row))
    });
    found.map(|(_, line)| line)
}

/// The innermost function at an address, inlined ones included.
fn function(loader: &Loader, offset: u64) -> Option<String> {
    let frame = loader.find_frames(offset).ok()?.next().ok()??;
    let name = frame.function?;
    name.raw_name().ok().map(|name| name.into_owned())
}
