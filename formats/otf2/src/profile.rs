//! The profile of regions of the program, for which OTF2 has no records. Each region is a
//! property of its location, named `laggard::region::0` and so on. Its value is a text:
//!
//! ```text
//! kind=1 region=7 path=3,5,9 flags=0 count=15 inclusive=… exclusive=… minimum=… maximum=…
//! unended=0 unbegun=0 untimed=0 squares=…
//! ```
//!
//! Kinds and sums are those of a trace, in ns and ns². The OTF2 region `region` gives the name.
//! The OTF2 regions in `path`, outermost first, are the call path of the first begin, or a
//! function's entry.

use std::fmt::Write;

use laggard_trace::RegionEntry;

/// Prefix of the names of these properties.
pub const PROPERTY: &str = "laggard::region::";
/// Most regions on a path.
const DEEPEST: usize = 256;

/// The profile of a region at a location; ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegionProfile {
    /// Kind as in a trace.
    pub kind: u32,
    /// The archive's region with its name.
    pub region: u32,
    /// The regions around its first begin, outermost first.
    pub path: Vec<u32>,
    /// The sums; the region's id is not set.
    pub entry: RegionEntry,
}

impl RegionProfile {
    /// The value of the property.
    pub fn text(&self) -> String {
        let path: Vec<String> = self.path.iter().map(u32::to_string).collect();
        let path = path.join(",");
        let mut text = format!("kind={} region={} path={path}", self.kind, self.region);
        for (name, sum) in NAMES.iter().zip(self.sums()) {
            let _ = write!(text, " {name}={sum}");
        }
        text
    }

    /// Parses the value of the property; `None` if it is malformed.
    pub fn parse(text: &[u8]) -> Option<RegionProfile> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split(' ');
        let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
        let (kind, region) = (value("kind")?.parse().ok()?, value("region")?.parse().ok()?);
        let path = value("path")?;
        let path = path.split(',').filter(|number| !number.is_empty());
        let path: Vec<u32> = path
            .take(DEEPEST)
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let mut sums = [0u128; NAMES.len()];
        for (name, sum) in NAMES.iter().zip(&mut sums) {
            *sum = value(name)?.parse().ok()?;
        }
        let [flags, rest @ .., squares] = sums;
        let mut small = [0u64; NAMES.len() - 2];
        for (small, sum) in small.iter_mut().zip(rest) {
            *small = u64::try_from(sum).ok()?;
        }
        let [
            count,
            inclusive,
            exclusive,
            minimum,
            maximum,
            unended,
            unbegun,
            untimed,
        ] = small;
        Some(RegionProfile {
            kind,
            region,
            path,
            entry: RegionEntry {
                region: 0,
                flags: u32::try_from(flags).ok()?,
                count,
                inclusive,
                exclusive,
                minimum,
                maximum,
                unended,
                unbegun,
                untimed,
                reserved: 0,
                sum_of_squares: squares,
            },
        })
    }

    fn sums(&self) -> [u128; NAMES.len()] {
        let e = &self.entry;
        [
            e.flags.into(),
            e.count.into(),
            e.inclusive.into(),
            e.exclusive.into(),
            e.minimum.into(),
            e.maximum.into(),
            e.unended.into(),
            e.unbegun.into(),
            e.untimed.into(),
            e.sum_of_squares,
        ]
    }
}

/// Names of the sums, in order.
const NAMES: [&str; 10] = [
    "flags",
    "count",
    "inclusive",
    "exclusive",
    "minimum",
    "maximum",
    "unended",
    "unbegun",
    "untimed",
    "squares",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> RegionProfile {
        RegionProfile {
            kind: 2,
            region: 7,
            path: vec![3, 5, 9],
            entry: RegionEntry {
                flags: 1,
                count: 15,
                inclusive: u64::MAX,
                exclusive: 12,
                minimum: 1,
                maximum: 9,
                unended: 2,
                unbegun: 3,
                untimed: 4,
                sum_of_squares: u128::MAX,
                ..RegionEntry::default()
            },
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let bare = RegionProfile {
            path: Vec::new(),
            ..profile()
        };
        for one in [profile(), bare, RegionProfile::default()] {
            assert_eq!(RegionProfile::parse(one.text().as_bytes()), Some(one));
        }
    }

    #[test]
    fn other_texts_are_none() {
        let text = profile().text();
        for wrong in [
            String::new(),
            text.replace("kind", "king"),
            text.replace("count=15", "count=-15"),
            text.replace("exclusive=12", "exclusive=36893488147419103232"),
            text.replace("path=3,5", "path=3;5"),
            text.replace(" squares", ""),
        ] {
            assert_eq!(RegionProfile::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(RegionProfile::parse(b"\xff"), None);
    }
}
