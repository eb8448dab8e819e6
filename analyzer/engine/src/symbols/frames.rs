//! Where functions begin and end, by a module's tables for unwinding (`.eh_frame`). Programs without symbols
//! have these, too.

use addr2line::gimli::{self, BaseAddresses, CieOrFde, EhFrame, NativeEndian, UnwindSection};
use memmap2::Mmap;
use object::{Object, ObjectSection};

use super::module::parse;

/// The functions of a module: begin and end, in order.
#[derive(Debug, Default)]
pub(super) struct Functions(Vec<(u64, u64)>);

impl Functions {
    /// Those of a file; none if it has no such tables.
    pub fn of(file: &Mmap) -> Functions {
        let mut functions = read(file).unwrap_or_default();
        functions.sort_unstable();
        Functions(functions)
    }

    /// Where the function begins that has this address.
    pub fn start(&self, address: u64) -> Option<u64> {
        let after = self.0.partition_point(|(begin, _)| *begin <= address);
        let (begin, end) = self.0[..after].last()?;
        (address < *end).then_some(*begin)
    }
}

fn read(file: &Mmap) -> Option<Vec<(u64, u64)>> {
    let object = parse(file)?;
    let section = object.section_by_name(".eh_frame")?;
    let mut bases = BaseAddresses::default().set_eh_frame(section.address());
    if let Some(text) = object.section_by_name(".text") {
        bases = bases.set_text(text.address());
    }
    if let Some(got) = object.section_by_name(".got") {
        bases = bases.set_got(got.address());
    }
    let data = section.data().ok()?;
    let mut table = EhFrame::new(data, NativeEndian);
    table.set_address_size(if object.is_64() { 8 } else { 4 });
    let mut entries = table.entries(&bases);
    let mut functions = Vec::new();
    // A table that is broken ends there.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let found = partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset));
        let Ok::<_, gimli::Error>(found) = found else {
            continue;
        };
        functions.push((found.initial_address(), found.end_address()));
    }
    Some(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn here() -> u64 {
        std::hint::black_box(here as *const () as u64)
    }

    /// This program's own functions.
    #[test]
    fn functions_begin_where_they_do() {
        let file = super::super::module::map(&std::env::current_exe().unwrap()).unwrap();
        let functions = Functions::of(&file);
        let bias = bias();
        let begin = here() - bias;
        assert_eq!(functions.start(begin), Some(begin));
        assert_eq!(functions.start(begin + 1), Some(begin));
        assert_eq!(functions.start(0), None);
        assert_eq!(functions.start(u64::MAX), None);
    }

    /// The address to which this program was loaded.
    fn bias() -> u64 {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let program = std::env::current_exe().unwrap();
        let own = maps
            .lines()
            .find(|line| line.ends_with(program.to_str().unwrap()));
        let (begin, _) = own.unwrap().split_once('-').unwrap();
        u64::from_str_radix(begin, 16).unwrap()
    }
}
