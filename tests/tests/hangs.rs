//! Programs that hang until they are killed. The report tells in which call each rank was, since
//! when, and which ranks wait for which. Reports of programs that do not hang have nothing of the
//! kind.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use laggard_tests::product::{Bench, programs};
use laggard_tests::report::Report;
use laggard_trace::{FILE_EXTENSION, Location, OpenCall};
use zerocopy::{FromBytes, IntoBytes};

const SOURCE: &str = "attacks/hangs.c";
/// Offset of the current call in a file.
const OPEN_CALL: usize = 192;

/// `hangs.c:27`, the first line with this text.
fn line(text: &str) -> String {
    line_in(SOURCE, text)
}

fn line_in(source: &str, text: &str) -> String {
    let path = programs().join(source);
    let lines = fs::read_to_string(&path).expect("a source");
    let at = lines.lines().position(|line| line.contains(text));
    let name = path.file_name().expect("a name").display();
    format!("{name}:{}", at.expect("a line") + 1)
}

/// Records a scene with three ranks; returns the trace.
fn recorded(scene: &str, files: &str) -> (Bench, PathBuf) {
    recorded_as(&format!("hangs-{scene}"), scene, files)
}

fn recorded_as(test: &str, scene: &str, files: &str) -> (Bench, PathBuf) {
    let bench = Bench::sharing(test);
    let program = bench.compile(SOURCE, &[], &[]);
    let words = [program.as_os_str(), OsStr::new(scene)];
    let run = bench.traced(3, &words, "trace");
    run.env("LAGGARD_FILE_PER", files).run().expect_orderly();
    let trace = bench.path("trace");
    (bench, trace)
}

/// Details of the report's anomalies of this kind, without times.
fn said(bench: &Bench, trace: &Path, id: &str) -> Vec<String> {
    let [rows] = all_said(bench, trace, [id]);
    rows
}

/// The same of several kinds.
fn all_said<const N: usize>(bench: &Bench, trace: &Path, ids: [&str; N]) -> [Vec<String>; N] {
    let report = bench.analyze_agreed(trace);
    let report = Report::parse(&report).expect("a report of the promised shape");
    ids.map(|id| {
        let rows = report.anomalies.iter().filter(|row| row.id == id);
        rows.map(|row| without_times(&row.detail)).collect()
    })
}

/// Takes out `, since 0.301 s` and `, so for at least 1.2 ms`.
fn without_times(detail: &str) -> String {
    let mut text = detail.to_owned();
    for begin in ["since ", ", so for at least "] {
        while let Some(at) = text.find(begin) {
            let rest = &text[at + begin.len()..];
            let words = rest.split_inclusive([' ', ',']).take(2).map(str::len);
            let mut length: usize = words.sum();
            length -= usize::from(rest[..length].ends_with([',', ' ']));
            let number = rest.split(' ').next().expect("a word");
            assert!(
                number
                    .parse::<f64>()
                    .is_ok_and(|s| (0.0..60.0).contains(&s)),
                "{detail}"
            );
            text.replace_range(at..at + begin.len() + length, "");
        }
    }
    text
}

#[test]
fn a_rank_that_waits_for_one_that_computes_is_named() {
    let (bench, trace) = recorded("one", "node");
    let receive = line("MPI_Recv(&value, 1, MPI_INT, from, 7");
    let finalize = line("MPI_Finalize()");
    let hangs = said(&bench, &trace, "cut_off_in");
    let expected = [
        format!(
            "rank 1 was in MPI_Recv at {receive} when its trace ended, , waiting for a message \
             with tag 7 of rank 2; rank 2 was in no call that is known"
        ),
        format!(
            "rank 0 was in MPI_Finalize at {finalize} when its trace ended, , waiting for ranks \
             1-2 to enter it; rank 1 was in MPI_Recv at {receive}"
        ),
    ];
    assert_eq!(hangs, expected);
    assert_eq!(said(&bench, &trace, "deadlock"), [""; 0]);
    let computes = said(&bench, &trace, "cut_off_after");
    assert_eq!(computes.len(), 1, "{computes:?}");
    assert!(computes[0].starts_with("rank 2 was cut off in no call, so while it computed,"));
    let path = bench.path("said.json");
    let outcome = bench.analyze(&trace, 1, &path, &[]);
    let text = outcome.expect_orderly().expect_success().stdout.clone();
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    let begins = format!("It did not end by itself: rank 1 was in MPI_Recv at {receive} when");
    assert!(text.contains(&begins), "{text}");
    assert!(text.contains("(1 more such call below)"), "{text}");
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    let receive = line("MPI_Recv(&value, 1, MPI_INT, from, 7");
    let (bench, trace) = recorded("circle", "location");
    let circle = |call: &str| {
        format!(
            "ranks 0-2 wait for each other, so that none can go on: rank 0 in {call} for rank 1, \
             rank 1 in {call} for rank 2, rank 2 in {call} for rank 0"
        )
    };
    let found = said(&bench, &trace, "deadlock");
    assert_eq!(found, [circle(&format!("MPI_Recv at {receive}"))]);
    let hangs = said(&bench, &trace, "cut_off_in");
    assert_eq!(hangs.len(), 1, "{hangs:?}");
    let begins = format!("ranks 0-2 were in MPI_Recv at {receive} when their traces ended, rank ");
    assert!(hangs[0].starts_with(&begins), "{hangs:?}");

    // Two benches at once would wait for each other.
    drop(bench);
    let (bench, trace) = recorded("sends", "location");
    let send = line("MPI_Send(large");
    let found = said(&bench, &trace, "deadlock");
    assert_eq!(found, [circle(&format!("MPI_Send at {send}"))]);
}

/// Threads that wait for threads never come back, either: each is told, and what the first one waits for.
#[test]
fn threads_that_wait_for_each_other_are_named() {
    let source = "attacks/threads_hang.c";
    let ended = |scene: &str| {
        let bench = Bench::sharing(&format!("hangs-threads-{scene}"));
        let program = bench.compile(source, &["-pthread"], &[]);
        let words = [program.as_os_str(), OsStr::new(scene)];
        bench.traced(2, &words, "trace").run().expect_orderly();
        let trace = bench.path("trace");
        all_said(&bench, &trace, ["cut_off_in", "deadlock"])
    };
    let [join, lock, barrier] = ["pthread_join(threads[own]", "never", "MPI_Barrier(WORLD)"]
        .map(|text| line_in(source, text));
    let [mut hangs, circles] = ended("circle");
    hangs.sort_unstable();
    let told = |who: &str, rest: &str| format!("{who} was in {rest}");
    let rank = format!(
        "MPI_Barrier at {barrier} when its trace ended, , waiting for rank 0 to enter it; rank 0 was in \
         pthread_join at {join}"
    );
    assert_eq!(hangs.len(), 3, "{hangs:?}");
    assert!(
        hangs[0].starts_with(&told("rank 0", &format!("pthread_join at {join}"))),
        "{hangs:?}"
    );
    assert_eq!(hangs[1], told("rank 1", &rank));
    assert!(
        hangs[2].starts_with(&format!(
            "threads 1-2 of rank 0 were in pthread_mutex_lock at {lock}"
        )),
        "{hangs:?}"
    );
    let lock = format!("pthread_mutex_lock at {lock}");
    let circle = format!(
        "threads 1-2 of rank 0 wait for each other, so that none can go on: thread 1 of rank 0 in {lock} for \
         thread 2 of rank 0, thread 2 of rank 0 in {lock} for thread 1 of rank 0"
    );
    assert_eq!(circles, [circle]);

    // The same by locks that one has to write, and another wants to read.
    let read = format!(
        "pthread_rwlock_rdlock at {}",
        line_in(source, "/* to read */")
    );
    let circle = format!(
        "threads 1-2 of rank 0 wait for each other, so that none can go on: thread 1 of rank 0 in {read} for \
         thread 2 of rank 0, thread 2 of rank 0 in {read} for thread 1 of rank 0"
    );
    assert_eq!(ended("shared")[1], [circle]);

    // Who has it may give it back.
    let [hangs, circles] = ended("held");
    let held = format!(
        "thread 1 of rank 0 was in {lock} when its trace ended, , waiting for rank 0, which has it; it was in no \
         call that is known"
    );
    assert!(hangs.contains(&held), "{hangs:?}");
    assert_eq!(circles, [""; 0]);

    // But not while it waits for the end of the one that wants it.
    let joined = format!("pthread_join at {}", line_in(source, "/* joined */"));
    let [hangs, circles] = ended("joined");
    let join = format!("rank 0 was in {joined} when its trace ended");
    let join = hangs.iter().find(|hang| hang.starts_with(&join));
    let end = format!(", waiting for thread 1 of rank 0 to end; it was in {lock}");
    assert!(join.is_some_and(|join| join.ends_with(&end)), "{hangs:?}");
    let circle = format!(
        "threads 0-1 of rank 0 wait for each other, so that none can go on: rank 0 in {joined} for thread 1 of rank 0, \
         thread 1 of rank 0 in {lock} for rank 0"
    );
    assert_eq!(circles, [circle]);

    // Who has it waits for itself, unless it may take it again, or gives up.
    let itself = line_in(source, "/* itself */");
    let [hangs, circles] = ended("itself");
    let one = format!("thread 1 of rank 0 was in pthread_mutex_lock at {itself}");
    let one = hangs.iter().find(|hang| hang.starts_with(&one));
    assert!(
        one.is_some_and(|one| one.ends_with(", waiting for a mutex that it has itself")),
        "{hangs:?}"
    );
    let circle = format!(
        "a thread waits for itself: thread 1 of rank 0 in pthread_mutex_lock at {itself} for thread 1 of rank 0"
    );
    assert_eq!(circles, [circle]);
    let limit = line_in(source, "/* limit */");
    let [hangs, circles] = ended("limit");
    let one = format!("thread 1 of rank 0 was in pthread_mutex_lock at {limit}");
    let one = hangs.iter().find(|hang| hang.starts_with(&one));
    let end = ", waiting, for a limited time, for a mutex that it has itself";
    assert!(one.is_some_and(|one| one.ends_with(end)), "{hangs:?}");
    assert_eq!(circles, [""; 0]);
    let [hangs, circles] = ended("again");
    assert!(
        !hangs.iter().any(|hang| hang.contains("pthread_mutex_lock")),
        "{hangs:?}"
    );
    assert_eq!(circles, [""; 0]);

    // Who waits for work when the program ends does not hang.
    assert_eq!(ended("ends"), [const { Vec::<String>::new() }; 2]);
}

/// One of two is in their collective; a third waits for a request.
#[test]
fn a_message_may_wait_for_a_collective() {
    let (bench, trace) = recorded("barrier", "location");
    let receive = line("MPI_Recv(&value, 1, MPI_INT, from, 7");
    let barrier = line("MPI_Barrier(pair)");
    let (wait, posted) = (line("MPI_Wait("), line("MPI_Irecv("));
    let found = said(&bench, &trace, "deadlock");
    let expected = format!(
        "ranks 0-1 wait for each other, so that none can go on: rank 0 in MPI_Recv at {receive} \
         for rank 1, rank 1 in MPI_Barrier at {barrier} for rank 0"
    );
    assert_eq!(found, [expected]);
    let hangs = said(&bench, &trace, "cut_off_in");
    let expected = [
        format!(
            "rank 0 was in MPI_Recv at {receive} when its trace ended, , waiting for a message \
             with tag 7 of rank 1; rank 1 was in MPI_Barrier at {barrier}"
        ),
        format!(
            "rank 1 was in MPI_Barrier at {barrier} when its trace ended, , waiting for rank 0 \
             to enter it; rank 0 was in MPI_Recv at {receive}"
        ),
        format!(
            "rank 2 was in MPI_Wait at {wait} when its trace ended, , while nobody had sent a \
             message with tag 9 of rank 0 (MPI_Irecv at {posted}); rank 0 was in MPI_Recv at \
             {receive}"
        ),
    ];
    assert_eq!(hangs, expected);
}

/// Killed while they compute, in calls that would go on, or not at all.
#[test]
fn who_does_not_hang_is_in_no_deadlock() {
    for scene in ["computes", "exchanges", "ends"] {
        let (bench, trace) = recorded(scene, "location");
        let [deadlocks, hangs, after] =
            all_said(&bench, &trace, ["deadlock", "cut_off_in", "cut_off_after"]);
        assert_eq!(deadlocks, [""; 0], "{scene}");
        let exchanges = |row: &String| scene == "exchanges" && row.contains("MPI_Sendrecv at ");
        assert!(hangs.iter().all(exchanges), "{scene}: {hangs:?}");
        let is_in_none = |row: &String| row.contains(" was cut off in no call");
        assert!(after.iter().all(is_in_none), "{scene}: {after:?}");
        assert!(scene != "computes" || !after.is_empty());
    }
}

/// Data that the collector never stored there is no call, and does not show a computing rank.
#[test]
fn damage_is_no_call() {
    let (bench, trace) = recorded_as("hangs-damaged", "circle", "location");
    let files = fs::read_dir(&trace).expect("a trace");
    let files = files.map(|entry| entry.expect("an entry").path());
    let is_location = |path: &PathBuf| path.extension() == Some(OsStr::new(FILE_EXTENSION));
    let mut files: Vec<PathBuf> = files.filter(is_location).collect();
    files.sort();
    let change = |file: &Path, change: &dyn Fn(&mut OpenCall)| {
        let mut bytes = fs::read(file).expect("a file");
        let range = OPEN_CALL..OPEN_CALL + size_of::<OpenCall>();
        let mut call = OpenCall::read_from_bytes(&bytes[range.clone()]).expect("a call");
        change(&mut call);
        bytes[range].copy_from_slice(call.as_bytes());
        fs::write(file, bytes).expect("written");
    };
    let hangs = || said(&bench, &trace, "cut_off_in");
    assert_eq!(hangs().len(), 1);
    // A time years away, and a number that is no call's: both with a correct check.
    change(&files[0], &|call| {
        call.check ^= call.enter;
        call.enter = u64::MAX / 2;
        call.check ^= call.enter;
    });
    change(&files[1], &|call| {
        call.check ^= u64::from(call.operation ^ 60_000);
        call.operation = 60_000;
    });
    let opened = Location::open(&files[1]).expect("a location");
    assert_eq!(opened.open_call.map(|call| call.operation), Some(60_000));
    // An undefined call path, and a rank that does not exist.
    change(&files[2], &|call| {
        call.check ^= u64::from(call.call_path ^ 0xffff) << 32;
        call.call_path = 0xffff;
        call.check ^= u64::from(call.peer as u32 ^ 0x7000_0000);
        call.peer = 0x7000_0000;
    });
    let found = hangs();
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = "rank 2 was in MPI_Recv at an unknown place when its trace ended, ";
    assert!(found[0].starts_with(expected), "{found:?}");
    assert!(
        found[0].ends_with("of rank 1879048192 there is no trace"),
        "{found:?}"
    );
    assert_eq!(said(&bench, &trace, "deadlock"), [""; 0]);
    let after = said(&bench, &trace, "cut_off_after");
    assert!(
        after[0].contains("while it computed or in a call that is not known"),
        "{after:?}"
    );
    // Without a correct check nothing is left.
    change(&files[2], &|call| call.tag ^= 1);
    assert_eq!(hangs(), [""; 0]);
}
