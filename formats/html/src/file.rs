//! Pages as files.

use std::io::{self, Read};
use std::path::Path;

use laggard_files::Place;

use crate::page::START;
use crate::{Error, Page, render};

/// Whether [`write()`] may write this file: it is missing, an older page, empty, or a stream.
///
/// # Errors
/// It may not, or the directory does not exist.
pub fn check_target(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    match laggard_files::check(path).map_err(failed)? {
        Place::File if !is_page(path).map_err(failed)? => Err(Error::WouldOverwrite {
            path: path.to_owned(),
        }),
        Place::Free | Place::File | Place::Stream => Ok(()),
    }
}

/// Writes a page, as a whole or not at all. Replaces any file that [`check_target`] allows.
///
/// # Errors
/// As [`check_target`]; or the system refuses to write.
pub fn write(page: &Page, path: &Path) -> Result<(), Error> {
    check_target(path)?;
    let text = render(page);
    laggard_files::replace(path, text.as_bytes()).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

/// Whether the file begins as pages of any version do.
fn is_page(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    let most = START.len() as u64;
    let (file, _) = laggard_files::open(path)?;
    file.take(most).read_to_end(&mut start)?;
    Ok(start == START.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use laggard_report::Report;

    use super::*;
    use crate::Sources;

    fn example() -> Report {
        let text = include_bytes!("../../report/tests/example.json");
        Report::from_json(text, Path::new("example.json")).unwrap()
    }

    #[test]
    fn only_pages_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.html");
        let (report, sources) = (example(), Sources::default());
        let page = Page {
            report: &report,
            sources: &sources,
            pictures: &[],
        };
        write(&page, &path).unwrap();
        write(&page, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), render(&page));
        for other in ["<!DOCTYPE html><title>thesis</title>", "x"] {
            fs::write(&path, other).unwrap();
            let error = write(&page, &path).unwrap_err();
            assert!(matches!(error, Error::WouldOverwrite { .. }), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
        fs::write(&path, "").unwrap();
        write(&page, &path).unwrap();
        assert!(write(&page, directory.path()).is_err());
        assert!(write(&page, &directory.path().join("missing/report.html")).is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }
}
