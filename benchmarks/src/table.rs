//! Small tables and the statistics in them.

use std::fmt;

/// Rows of text under a head; columns from the second on are aligned to the right.
#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with the names of its columns.
    pub fn new(title: &str, head: &[&str]) -> Table {
        let head = head.iter().map(|&name| name.to_owned()).collect();
        Table {
            title: title.to_owned(),
            rows: vec![head],
        }
    }

    /// Appends a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.title)?;
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let length = |cell: &String| cell.chars().count();
        let widths: Vec<usize> = (0..columns)
            .map(|at| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(at))
                    .map(length)
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                match at {
                    0 => line.push_str(&format!("{cell:width$}")),
                    _ => line.push_str(&format!("  {cell:>width$}")),
                }
            }
            writeln!(out, "  {}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The median; of an even number of values, the mean of the two in the middle. NaN without values.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[at],
        _ => (values[at - 1] + values[at]) / 2.0,
    }
}

/// The value that this part of all values is not above. NaN without values.
pub fn percentile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = (part * values.len() as f64).ceil() as usize;
    values
        .get(at.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.99), 99.0);
        assert_eq!(percentile(&hundred[..3], 0.99), 100.0);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new("Title", &["what", "ns"]);
        table.row(["a longer one".to_owned(), "1.5".to_owned()]);
        table.row(["b".to_owned(), "100.5".to_owned()]);
        let text = "Title\n  what             ns\n  a longer one    1.5\n  b             100.5\n";
        assert_eq!(table.to_string(), text);
    }
}
