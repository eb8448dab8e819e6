//! Cartesian communicators in archives.

use laggard_tests::archive::Archive;
use laggard_tests::process;
use laggard_tests::product::{Bench, TIMEOUT};
use laggard_tests::served::{client, first_line, reply};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

use super::reported;

/// What `laggard serve` says of the only grid, and what its ranks sent.
fn grid(bench: &Bench, anchor: &Path) -> Value {
    let mut command = Command::new(&bench.command);
    command.arg("serve").arg(anchor).arg("-q");
    let (mut server, address) = first_line(command);
    let mut client = client(&address);
    let listed = reply(&mut client, json!({"ask": "topology", "metric": "waiting"}));
    let all = &listed["answer"]["communicators"];
    let id = &all[0]["id"];
    let question = json!({"ask": "topology", "metric": "bytes", "communicator": id});
    let told = reply(&mut client, question);
    // Best effort: nothing else is of interest.
    let _ = server.kill();
    let _ = server.wait();
    let sizes = all.as_array().expect("communicators").iter();
    let sizes: Vec<&Value> = sizes.map(|one| &one["dimensions"]).collect();
    json!([sizes, told["answer"]["places"]])
}

/// Where ranks are in a grid is what the archive says, not the order of their numbers; so it is in an archive
/// that is made of it.
#[test]
fn ranks_stand_in_the_grid_of_an_archive() {
    let bench = Bench::beside("otf2-grids");
    let mut archive = Archive::new(4);
    archive
        .line("comm blocks 3,2,1,0 world")
        .line("grid blocks 2,2 1")
        .line("comm row 0,1 world")
        // Two coordinates of one dimension, and one that is outside: neither is a place.
        .line("grid row 2")
        .line("place row 0 0,0")
        .line("place row 1 2");
    for (rank, at) in ["1,1", "1,0", "0,0", "0,1"].iter().enumerate() {
        archive.line(&format!("place blocks {rank} {at}"));
    }
    archive
        .call((0, "MPI_Send", (1_000, 2_000), &["send 2 blocks 7 64"]))
        .call((1, "MPI_Recv", (1_500, 2_500), &["recv 3 blocks 7 64"]));
    for rank in 0..4 {
        archive.call((rank, "MPI_Barrier", (9_000, 10_000), &[]));
    }
    let anchor = archive.write(&bench, "archive");
    assert_eq!(reported(&bench, &anchor).anomaly("undefined_places"), 2);
    // World ranks 1, 0, 2, 3 by place: number, location, rank, ranks, bytes.
    let expected = json!([
        [[[2, false], [2, true]]],
        [
            [0, 1, 1, 1, 0],
            [1, 0, 0, 1, 64],
            [2, 2, 2, 1, 0],
            [3, 3, 3, 1, 0]
        ]
    ]);
    assert_eq!(grid(&bench, &anchor), expected);
    let mut export = Command::new(&bench.command);
    export.arg("export").arg(&anchor);
    export.args(["--to", "otf2", "-o", "again"]);
    export.current_dir(&bench.dir);
    process::run(&mut export, TIMEOUT, &bench.path("export")).expect_success();
    let again = bench.path("again").join("traces.otf2");
    assert_eq!(grid(&bench, &again), expected);
}
