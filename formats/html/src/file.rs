//! Pages as files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::page::START;
use crate::{Error, Page, render};

/// Whether [`write()`] may write this file: there is none, or an older page, an empty file, or
/// something that is no regular file.
///
/// # Errors
/// It may not, or there is no such directory.
pub fn check_target(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(found) if found.is_file() && found.len() > 0 => match is_page(path) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::WouldOverwrite {
                path: path.to_owned(),
            }),
            Err(error) => Err(failed(error)),
        },
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            match above.map(fs::metadata) {
                Some(Err(source)) => Err(failed(source)),
                _ => Ok(()),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

/// Writes a page, as a whole or not at all. Replaces what [`check_target`] allows.
///
/// # Errors
/// See there; or the system refuses to write.
pub fn write(page: &Page, path: &Path) -> Result<(), Error> {
    check_target(path)?;
    let text = render(page);
    laggard_report::replace(path, text.as_bytes()).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

/// Whether the file begins as pages of any version do.
fn is_page(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    let most = START.len() as u64;
    File::open(path)?.take(most).read_to_end(&mut start)?;
    Ok(start == START.as_bytes())
}

#[cfg(test)]
mod tests {
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
