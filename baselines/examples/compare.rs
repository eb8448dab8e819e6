//! How far two tables of one machine differ, and how close the models are to the sizes that they
//! were not fitted to.
//!
//!     cargo run --release -p laggard-baselines --example compare A.json B.json

use std::path::Path;

use laggard_baselines::{Entry, Table};

/// Error of a model that is good enough to be used.
const CLOSE: f64 = 0.25;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [one, other] = &files[..] else {
        return Err("usage: compare A.json B.json".into());
    };
    let (one, other) = (Table::read(Path::new(one))?, Table::read(Path::new(other))?);
    let mut groups: Vec<u32> = one.entries.iter().map(|entry| entry.group_size).collect();
    groups.sort_unstable();
    groups.dedup();
    println!("members  times  median difference  checks  median error  within 25 %");
    for group in groups {
        let of_group = |table: &Table| -> Vec<Entry> {
            let entries = table.entries.iter();
            let entries = entries.filter(|entry| entry.group_size == group);
            entries.cloned().collect()
        };
        let (own, others) = (of_group(&one), of_group(&other));
        let mut differences = Vec::new();
        for entry in &own {
            let same = others.iter().find(|other| other.key() == entry.key());
            let points = same.map_or(&[][..], |same| &same.points);
            for point in &entry.points {
                if let Some(again) = points.iter().find(|p| p.bytes == point.bytes) {
                    let smaller = again.time_s.min(point.time_s);
                    differences.push((again.time_s - point.time_s).abs() / smaller);
                }
            }
        }
        let mut errors = Vec::new();
        for entry in own.iter().chain(&others) {
            let Some(model) = &entry.model else { continue };
            let error = |check: &laggard_baselines::Point| {
                (model.time(check.bytes) / check.time_s - 1.0).abs()
            };
            errors.extend(entry.checks.iter().map(error));
        }
        let close = errors.iter().filter(|error| **error <= CLOSE).count();
        println!(
            "{group:>7}  {:>5}  {:>15.1} %  {:>6}  {:>10.1} %  {:>9.0} %",
            differences.len(),
            percent(&mut differences),
            errors.len(),
            percent(&mut errors),
            close as f64 * 100.0 / errors.len().max(1) as f64,
        );
    }
    Ok(())
}

/// The median, %.
fn percent(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(values.len() / 2)
        .map_or(0.0, |value| value * 100.0)
}
