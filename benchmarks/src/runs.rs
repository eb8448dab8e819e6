//! Kept runs: raw numbers with the machine they are from.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::machine;
use crate::process::Usage;
use crate::table::{Table, median};

/// Results of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// For people.
    tables: Vec<Table>,
    /// Every measured value: its name, and the values of all rounds.
    pub raw: Vec<(String, Vec<f64>)>,
}

impl Outcome {
    /// Adds a table and prints it.
    pub fn table(&mut self, table: Table) {
        println!("{table}");
        self.tables.push(table);
    }

    /// A row about pairs of runs, alone and with another thing: wall time of both and its ratio, and the same of
    /// processor time. Medians; keeps the values.
    pub fn pairs(&mut self, name: &str, with: &str, pairs: &[(Usage, Usage)]) -> Vec<String> {
        let mut row = vec![name.to_owned()];
        for (unit, of) in [
            ("wall", (|usage| usage.wall_s) as fn(&Usage) -> f64),
            ("processor", |usage| usage.cpu_s),
        ] {
            let alone: Vec<f64> = pairs.iter().map(|(alone, _)| of(alone)).collect();
            let other: Vec<f64> = pairs.iter().map(|(_, other)| of(other)).collect();
            let ratios: Vec<f64> = pairs.iter().map(|(a, b)| of(b) / of(a)).collect();
            row.push(format!("{:.2}", median(&alone)));
            row.push(format!("{:.2}", median(&other)));
            row.push(format!("{:.3}", median(&ratios)));
            self.raw.push((format!("{name}, {unit} s"), alone));
            self.raw.push((format!("{name}, {with}, {unit} s"), other));
        }
        row
    }

    /// Appends tables and values to `runs/DATE-WHAT.txt`; returns the path.
    ///
    /// # Errors
    /// What the file system says.
    pub fn save(&self, what: &str) -> Result<PathBuf> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("runs");
        fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{}-{what}.txt", date(seconds_now())));
        let mut text = machine::description();
        for table in &self.tables {
            text.push_str(&format!("\n{table}"));
        }
        text.push_str("\nEvery value\n");
        for (name, values) in &self.raw {
            let values: Vec<String> = values.iter().map(|value| format!("{value:.6}")).collect();
            text.push_str(&format!("  {name}: {}\n", values.join(" ")));
        }
        text.push('\n');
        let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
        file.write_all(text.as_bytes())
            .with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

fn seconds_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// YYYY-MM-DD of a time since 1970 in UTC (Hinnant, "chrono-compatible low-level date algorithms").
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_735_689_599), "2024-12-31");
    }
}
