//! Names of findings that do not depend on what else is found.

use std::fmt::Write;

use laggard_report::{Bottleneck, SourceLocation};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::symbols::base_name;

/// Gives each finding an id that follows from its pattern, call and place alone. Numbers change
/// with the filters; ids do not.
pub fn add(findings: &mut [Bottleneck]) {
    let mut used: FxHashMap<String, u32> = FxHashMap::default();
    for found in findings {
        let mut id = of(found);
        let times = used.entry(id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            let _ = write!(id, "-{times}");
        }
        found.id = id;
    }
}

fn of(found: &Bottleneck) -> String {
    // Directories depend on who compiled it, and callers on what other places the report has; the
    // call path has them all.
    let SourceLocation {
        file,
        line,
        function,
        callpath,
        ..
    } = &found.location;
    let line = line.to_string();
    let own: [&str; 5] = [
        &found.pattern,
        &found.operation,
        base_name(file),
        &line,
        function,
    ];
    let texts: Vec<&str> = own
        .into_iter()
        .chain(callpath.iter().map(String::as_str))
        .collect();
    let hash = xxh3_64(texts.join("\0").as_bytes());
    format!("f{:06x}", hash & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(lines: &[u32]) -> Vec<String> {
        let found = lines.iter().map(|&line| Bottleneck {
            pattern: "late_sender".to_owned(),
            location: SourceLocation {
                line,
                ..SourceLocation::default()
            },
            ..Bottleneck::default()
        });
        let mut found: Vec<Bottleneck> = found.collect();
        add(&mut found);
        found.into_iter().map(|found| found.id).collect()
    }

    #[test]
    fn ids_do_not_depend_on_other_findings() {
        let (few, many) = (ids(&[7, 9]), ids(&[3, 9, 5, 7]));
        assert_eq!((&few[0], &few[1]), (&many[3], &many[1]));
        assert!(few[0] != few[1] && few[0].starts_with('f') && few[0].len() == 7);
        let twice = ids(&[7, 7]);
        assert_eq!(
            (&twice[0], twice[1].clone()),
            (&few[0], format!("{}-2", few[0]))
        );
    }
}
