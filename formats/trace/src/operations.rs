//! Operation maps: the generic types of regions of the program.
//!
//! A TOML file with one line per region or function: its name and a type:
//!
//! ```toml
//! "spin_until" = "wait_on_value"
//! ```
//!
//! The lines may stand below a heading `[operations]`. Other forms of TOML are errors that name
//! the line.

use std::collections::BTreeMap;
use std::path::Path;

use crate::calls::GenericType;

/// Largest map, bytes; nobody types more.
const LARGEST: u64 = 1 << 20;

/// Generic types by region name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationMap(BTreeMap<String, GenericType>);

impl OperationMap {
    /// Reads a file.
    ///
    /// # Errors
    /// A description of the fault, with file and line.
    pub fn read(path: &Path) -> Result<OperationMap, String> {
        let shown = path.display();
        let unreadable =
            |error: std::io::Error| format!("{shown}: cannot read the operation map: {error}");
        let bytes = laggard_files::read(path, LARGEST).map_err(unreadable)?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{shown}: not a text file"))?;
        OperationMap::parse(&text).map_err(|(line, why)| format!("{shown}:{line}: {why}"))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// The line, from 1, and its fault.
    pub fn parse(text: &str) -> Result<OperationMap, (usize, String)> {
        let mut map = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |why: String| (number, why);
            let Some((name, value)) = entry(line).map_err(wrong)? else {
                continue;
            };
            let generic = GenericType::ALL.into_iter().find(|g| g.name() == value);
            let Some(generic) = generic else {
                let known: Vec<&str> = GenericType::ALL.into_iter().map(|g| g.name()).collect();
                let known = known.join(", ");
                return Err(wrong(format!(
                    "unknown operation type \"{value}\"; use one of {known}"
                )));
            };
            if map.insert(name.clone(), generic).is_some() {
                return Err(wrong(format!("\"{name}\" is there twice")));
            }
        }
        Ok(OperationMap(map))
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any region has this type.
    pub fn has(&self, generic: GenericType) -> bool {
        self.0.values().any(|&known| known == generic)
    }

    /// Names and types, ascending.
    pub fn entries(&self) -> impl Iterator<Item = (&str, GenericType)> {
        self.0
            .iter()
            .map(|(name, generic)| (name.as_str(), *generic))
    }

    /// The entry for a region with this name. Functions of C++ and Rust match without their
    /// arguments, too.
    pub fn get(&self, name: &str) -> Option<(&str, GenericType)> {
        let bare = name.split('(').next().unwrap_or(name);
        let found = self.0.get_key_value(name);
        let found = found.or_else(|| self.0.get_key_value(bare));
        found.map(|(name, generic)| (name.as_str(), *generic))
    }
}

/// Name and value of a line; `None` if it has none.
fn entry(line: &str) -> Result<Option<(String, String)>, String> {
    const FORM: &str = "expected a line such as \"spin_until\" = \"wait_on_value\"";
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if let Some(rest) = line.strip_prefix('[') {
        let (table, rest) = rest.split_once(']').ok_or(FORM)?;
        return match (table.trim(), is_end(rest)) {
            ("operations", true) => Ok(None),
            ("operations", false) => Err(FORM.to_owned()),
            (other, _) => Err(format!(
                "unknown table [{other}]; the only one is [operations]"
            )),
        };
    }
    let (name, rest) = string(line).or_else(|| bare_key(line)).ok_or(FORM)?;
    let rest = rest.trim_start().strip_prefix('=').ok_or(FORM)?;
    let (value, rest) = string(rest.trim_start()).ok_or(FORM)?;
    match is_end(rest) && !name.is_empty() {
        true => Ok(Some((name, value))),
        false => Err(FORM.to_owned()),
    }
}

/// Whether only a comment follows.
fn is_end(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with('#')
}

/// A basic or literal string, and the rest.
fn string(text: &str) -> Option<(String, &str)> {
    if let Some(rest) = text.strip_prefix('\'') {
        let (literal, rest) = rest.split_once('\'')?;
        return Some((literal.to_owned(), rest));
    }
    let mut rest = text.strip_prefix('"')?.chars();
    let mut value = String::new();
    loop {
        match rest.next()? {
            '"' => return Some((value, rest.as_str())),
            '\\' => match rest.next()? {
                found @ ('"' | '\\') => value.push(found),
                _ => return None,
            },
            other => value.push(other),
        }
    }
}

/// A key without quotes, and the rest.
fn bare_key(text: &str) -> Option<(String, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    (!key.is_empty()).then(|| (key.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_types() {
        let text = "# mine\n[operations] # all\n\"spin_until\" = \"wait_on_value\"\n\
            'write \"all\"' = 'io' # slow\r\nmy-lock=\"lock\"\n\n";
        let map = OperationMap::parse(text).unwrap();
        let known: Vec<_> = map.entries().collect();
        assert_eq!(
            known,
            [
                ("my-lock", GenericType::Lock),
                ("spin_until", GenericType::WaitOnValue),
                ("write \"all\"", GenericType::Io),
            ]
        );
        let found = map.get("spin_until(long volatile*, long)");
        assert_eq!(found, Some(("spin_until", GenericType::WaitOnValue)));
        assert_eq!(map.get("spin"), None);
        assert!(OperationMap::parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_names_its_line() {
        let wrong = |text| OperationMap::parse(text).unwrap_err();
        let (line, why) = wrong("\n\"spin\" = \"wait_on_vlaue\"\n");
        assert!(line == 2 && why.contains("wait_on_vlaue") && why.contains("wait_on_value,"));
        for bad in [
            "spin",
            "spin = wait_on_value",
            "\"spin\" = \"io\" x",
            "\"spin = \"io\"",
            "= \"io\"",
            "\"\" = \"io\"",
            "spin = \"\\q\"",
            "[operations",
            "[operations] x",
        ] {
            let text = format!("# one\n\n{bad}");
            let (line, why) = OperationMap::parse(&text).unwrap_err();
            assert!(line == 3 && why.contains("expected"), "{bad}: {why}");
        }
        assert!(wrong("[patterns]").1.contains("unknown table"));
        assert_eq!(wrong("a = 'io'\na = 'lock'").0, 2);
    }
}
