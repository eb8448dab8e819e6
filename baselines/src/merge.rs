//! Merges several tables: from jobs of other sizes, or at other times.

use std::path::PathBuf;

use crate::{Entry, Error, Fingerprint, Point, Table, Used};

impl Table {
    /// Merges several tables, each with its name for messages. Where tables overlap, the shorter
    /// time counts. Models are fitted anew.
    ///
    /// # Errors
    /// A table is of another machine or library than the tables before it. Tables without a
    /// fingerprint are not checked.
    pub fn merge(tables: Vec<(PathBuf, Table)>) -> Result<Table, Error> {
        let mut merged: Option<Table> = None;
        for (path, table) in tables {
            match &mut merged {
                None => merged = Some(table),
                Some(sum) => {
                    sum.fingerprint = joined(sum.fingerprint.take(), table.fingerprint)
                        .map_err(|what| Error::Merge { path, what })?;
                    if !sum.description.contains(&table.description) {
                        sum.description = format!("{}; {}", sum.description, table.description);
                    }
                    for note in table.notes {
                        if !sum.notes.contains(&note) {
                            sum.notes.push(note);
                        }
                    }
                    table.entries.into_iter().for_each(|entry| sum.add(entry));
                }
            }
        }
        let mut merged = merged.unwrap_or_else(|| Table::new("", Vec::new()));
        merged.sort();
        merged.fit();
        Ok(merged)
    }

    fn add(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|own| own.key() == entry.key()) {
            Some(own) => {
                lower(&mut own.points, entry.points);
                lower(&mut own.checks, entry.checks);
            }
            None => self.entries.push(entry),
        }
    }
}

/// The points of both; for equal bytes the one with the shorter time.
fn lower(points: &mut Vec<Point>, others: Vec<Point>) {
    for other in others {
        match points.iter_mut().find(|own| own.bytes == other.bytes) {
            Some(own) if other.time_s < own.time_s => *own = other,
            Some(_) => {}
            None => points.push(other),
        }
    }
}

/// The common machine of two tables, or their difference.
fn joined(
    one: Option<Fingerprint>,
    other: Option<Fingerprint>,
) -> Result<Option<Fingerprint>, String> {
    let (Some(mut one), Some(other)) = (one, other) else {
        return Ok(None);
    };
    let used = Used {
        cpu: &[],
        mpi_library: &other.mpi_library,
    };
    if let Some(what) = one.differs(&used) {
        return Err(what.replace("the run used", "this one with"));
    }
    if !one.cpu.is_empty() && !other.cpu.is_empty() && one.cpu != other.cpu {
        let (mine, theirs) = (one.cpu.join(", "), other.cpu.join(", "));
        return Err(format!(
            "they were measured on {mine}, this one on {theirs}"
        ));
    }
    for (own, more) in [
        (&mut one.hosts, other.hosts),
        (&mut one.network, other.network),
    ] {
        own.extend(more);
        own.sort();
        own.dedup();
    }
    one.ranks = one.ranks.max(other.ranks);
    one.cores = one.cores.min(other.cores);
    one.oversubscribed |= other.oversubscribed;
    Ok(Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(mpi_library: &str, group_size: u32, points: &[(u64, f64)]) -> (PathBuf, Table) {
        let points = points.iter().map(|&(bytes, time)| Point::new(bytes, time));
        let entry = Entry::new("MPI_Bcast", group_size, None, points.collect());
        let mut table = Table::new(&format!("{group_size} ranks"), vec![entry]);
        table.fingerprint = Some(Fingerprint {
            mpi_library: mpi_library.into(),
            cpu: vec!["A".into()],
            ..Fingerprint::default()
        });
        (PathBuf::from(format!("{group_size}.json")), table)
    }

    #[test]
    fn shorter_times_of_the_same_and_all_others_stay() {
        let first = table("x", 2, &[(1, 3e-6), (8, 4e-6)]);
        let again = table("x", 2, &[(1, 2e-6), (8, 5e-6), (64, 9e-6)]);
        let larger = table("x", 4, &[(1, 7e-6)]);
        let mut tables = vec![larger, first, again];
        let notes = [&["four", "both"][..], &["both"], &["again"]];
        for ((_, table), notes) in tables.iter_mut().zip(notes) {
            table.notes = notes.iter().map(|&note| note.to_owned()).collect();
        }
        let merged = Table::merge(tables).unwrap();
        assert_eq!(merged.notes, ["four", "both", "again"]);
        assert_eq!(merged.entries.len(), 2);
        let times = merged.entries[0].points.iter().map(|p| p.time_s);
        assert_eq!(times.collect::<Vec<_>>(), [2e-6, 4e-6, 9e-6]);
        assert_eq!(merged.entries[1].group_size, 4);
        assert_eq!(merged.description, "4 ranks; 2 ranks");
    }

    #[test]
    fn other_libraries_are_no_part_of_it() {
        let tables = vec![table("x", 2, &[(1, 1e-6)]), table("y", 4, &[(1, 1e-6)])];
        let error = Table::merge(tables).unwrap_err().to_string();
        assert_eq!(
            error,
            "4.json cannot be merged with the tables before it: \
             it was measured with x, this one with y"
        );
        let (path, mut unknown) = table("x", 4, &[(1, 1e-6)]);
        unknown.fingerprint = None;
        let merged = Table::merge(vec![table("x", 2, &[(1, 1e-6)]), (path, unknown)]);
        assert_eq!(merged.unwrap().fingerprint, None);
    }
}
