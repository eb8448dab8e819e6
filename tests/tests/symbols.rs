//! The collector exports every MPI function, or `left_out.txt` says why not.
//!
//! Each line of the list is a symbol, a blank and the reason; the lines are sorted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::product::Bench;

/// The MPI functions that a library exports.
fn functions(library: &Path) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library)
        .output();
    let output = output.expect("nm");
    assert!(output.status.success(), "nm {}", library.display());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_function = |kind: &str| ["T", "W", "i"].contains(&kind);
    let families = ["MPI_", "PMPI_", "MPIX_", "PMPIX_"];
    let is_mpi = |name: &str| families.iter().any(|family| name.starts_with(family));
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().rev();
            let name = words.next()?.split('@').next()?;
            let kind = words.next()?;
            (is_function(kind) && is_mpi(name)).then(|| name.to_string())
        })
        .collect()
}

/// The MPI library that programs use.
fn mpi_library(bench: &Bench) -> PathBuf {
    let program = bench.compile("attacks/tiny.c", &[], &[]);
    let output = Command::new("ldd").arg(program).output().expect("ldd");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| {
        let name = line.trim_start();
        name.starts_with("libmpi.so") || name.starts_with("libmpich.so")
    });
    let path = line.and_then(|line| line.split_whitespace().nth(2));
    PathBuf::from(path.unwrap_or_else(|| panic!("no MPI library in {text}")))
}

fn list() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("left_out.txt");
    let text = std::fs::read_to_string(path).expect("the list");
    let lines = text
        .lines()
        .map(|line| line.split_once(' ').expect("a symbol and a reason"));
    lines
        .map(|(name, reason)| (name.into(), reason.trim().into()))
        .collect()
}

#[test]
fn the_list_is_sorted_and_gives_reasons() {
    let list = list();
    for pair in list.windows(2) {
        assert!(
            pair[0].0 < pair[1].0,
            "{} stands before {}",
            pair[0].0,
            pair[1].0
        );
    }
    for (name, reason) in list {
        assert!(reason.len() > 10, "{name} has no reason");
    }
}

#[test]
fn every_function_is_exported_or_listed() {
    let bench = Bench::new("symbols");
    let theirs = functions(&mpi_library(&bench));
    let ours = functions(&bench.library);
    let left_out: BTreeSet<String> = list().into_iter().map(|(name, _)| name).collect();
    assert!(
        theirs.len() > 700,
        "only {} functions in the MPI library",
        theirs.len()
    );
    let missing: Vec<_> = theirs
        .iter()
        .filter(|n| !ours.contains(*n) && !left_out.contains(*n))
        .collect();
    assert!(
        missing.is_empty(),
        "neither exported nor listed: {missing:?}"
    );
    let both: Vec<_> = left_out.intersection(&ours).collect();
    assert!(
        both.is_empty(),
        "listed as left out, but exported: {both:?}"
    );
}

/// `dlsym` is to be the instructions that jump on: a function with a frame of its own would be
/// taken for the caller. That it is depends on the linker.
#[test]
fn dlsym_is_the_one_that_jumps() {
    let bench = Bench::new("dlsym-symbol");
    let address = |option: &str, symbol: &str| {
        let output = Command::new("nm").arg(option).arg(&bench.library).output();
        let text = String::from_utf8_lossy(&output.expect("nm").stdout).into_owned();
        let mut lines = text
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        let line = lines.find(|words| words.last() == Some(&symbol) && words.len() == 3);
        line.unwrap_or_else(|| panic!("no {symbol}"))[0].to_string()
    };
    assert_eq!(address("-D", "dlsym"), address("-a", "laggard_dlsym"));
}
