//! The archive: indices, rows, and the anchor.

use std::io::Write;

use crate::anchor::anchor;
use crate::{Cube, Error, Unit};

/// First bytes of an index, and of rows.
const INDEX: &[u8] = b"CUBEX.INDEX";
const DATA: &[u8] = b"CUBEX.DATA";

/// Rows are only those that the index lists.
const SPARSE: u8 = 1;

/// Writes a profile as a `.cubex` file.
///
/// # Errors
/// The system refuses to write, or there are too many call paths for the format.
pub fn write(cube: &Cube, out: impl Write) -> Result<(), Error> {
    let below = Cube::below(cube.call_paths.iter().map(|path| path.parent));
    // Rows of exclusive metrics are numbered as the nodes come in the tree, and so are ids.
    let mut ids = vec![0; cube.call_paths.len()];
    let mut open: Vec<usize> = below.get(&None).into_iter().flatten().copied().collect();
    let mut next = 0u32;
    while let Some(at) = open.pop() {
        ids[at] = next;
        next += 1;
        open.extend(below.get(&Some(at)).into_iter().flatten().rev());
    }
    if i32::try_from(ids.len()).is_err() {
        return Err(Error::TooLarge(ids.len()));
    }
    let mut archive = tar::Builder::new(out);
    add(&mut archive, "anchor.xml", &anchor(cube, &below, &ids)?)?;
    for at in 0..cube.metrics.len() {
        let mut rows: Vec<(u32, &[i64])> = cube
            .rows(at)
            .map(|(call_path, row)| (ids[call_path], row))
            .collect();
        rows.sort_unstable_by_key(|(id, _)| *id);
        // Readers take a metric that lacks its rows for damage: one row says that there is nothing.
        let nothing = vec![0; cube.threads()];
        if rows.is_empty() {
            rows.push((0, &nothing));
        }
        let mut index = INDEX.to_vec();
        // Tells the order of bytes.
        index.extend(1u32.to_le_bytes());
        index.extend(0u16.to_le_bytes());
        index.push(SPARSE);
        index.extend((rows.len() as u32).to_le_bytes());
        index.extend(rows.iter().flat_map(|(id, _)| id.to_le_bytes()));
        add(&mut archive, &format!("{at}.index"), &index)?;
        let mut data = DATA.to_vec();
        for amount in rows.iter().flat_map(|(_, row)| *row) {
            let amount = (*amount).max(0) as u64;
            data.extend(match cube.metrics[at].unit {
                Unit::Seconds => (amount as f64 / 1e9).to_le_bytes(),
                Unit::Occurrences | Unit::Bytes => amount.to_le_bytes(),
            });
        }
        add(&mut archive, &format!("{at}.data"), &data)?;
    }
    archive.into_inner()?.flush()?;
    Ok(())
}

fn add(archive: &mut tar::Builder<impl Write>, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o644);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, name, bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;
    use crate::{CallPath, Host, Metric, Process};

    /// The files of an archive.
    fn files(cube: &Cube) -> BTreeMap<String, Vec<u8>> {
        let mut bytes = Vec::new();
        write(cube, &mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let files = archive.entries().unwrap().map(|file| {
            let mut file = file.unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            (file.path().unwrap().display().to_string(), bytes)
        });
        files.collect()
    }

    fn cube() -> Cube {
        let metric = |parent, id: &str, unit| Metric {
            parent,
            id: id.to_owned(),
            name: id.to_uppercase(),
            unit,
            description: String::new(),
        };
        let path = |parent, function: &str| CallPath {
            parent,
            function: function.to_owned(),
            ..CallPath::default()
        };
        let process = |rank| Process {
            rank,
            name: format!("rank {rank}"),
            threads: vec![0],
        };
        let metrics = vec![
            metric(None, "time", Unit::Seconds),
            metric(Some(0), "inside", Unit::Seconds),
            metric(None, "visits", Unit::Occurrences),
        ];
        let hosts = vec![Host {
            name: "n1".into(),
            processes: vec![process(0), process(1)],
        }];
        let mut cube = Cube::new(metrics, hosts);
        // Not in the order of the tree.
        cube.call_paths = vec![
            path(None, "main"),
            path(Some(0), "a"),
            path(Some(0), "b<&\u{1}>"),
            path(Some(1), "c"),
        ];
        cube
    }

    #[test]
    fn rows_are_in_the_order_of_the_tree() {
        let mut cube = cube();
        cube.add(1, 2, 1, 3_000_000_000);
        cube.add(1, 3, 0, 500_000_000);
        let files = files(&cube);
        let index = &files["0.index"];
        let head = b"CUBEX.INDEX\x01\0\0\0\0\0\x01\x02\0\0\0";
        assert_eq!(&index[..head.len()], head);
        // main 0, a 1, c 2, b 3.
        assert_eq!(&index[head.len()..], b"\x02\0\0\0\x03\0\0\0");
        let values = files["0.data"][DATA.len()..].chunks(8);
        let values: Vec<f64> = values
            .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(values, [0.5, 0.0, 0.0, 3.0]);
        assert_eq!(files["0.data"], files["1.data"]);
        assert_eq!(cube.total(0), 3_500_000_000);
    }

    #[test]
    fn metrics_without_amounts_have_a_row_of_nothing() {
        let mut cube = cube();
        cube.add(2, 1, 0, 5);
        cube.add(2, 1, 0, -7);
        let files = files(&cube);
        assert_eq!(files["2.data"].len(), DATA.len() + 16);
        assert!(files["2.data"][DATA.len()..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn hostile_names_leave_the_anchor_well_formed() {
        let anchor = files(&cube()).remove("anchor.xml").unwrap();
        let text = String::from_utf8(anchor).unwrap();
        assert!(
            text.contains("<name>b&lt;&amp;\u{fffd}&gt;</name>"),
            "{text}"
        );
        let mut reader = quick_xml::Reader::from_str(&text);
        while reader.read_event().unwrap() != quick_xml::events::Event::Eof {}
    }
}
