//! Tables read back with an independent reader.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use laggard_tables::{Call, Late, PerRank, Row, Run, SCHEMA, Value};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

const RUN: Run = Run {
    run_id: [0xab; 16],
    program: "./app",
    arguments: &[],
    ranks: 3,
    all: true,
};

/// A table of `rows` rows, alternating between times and losses.
fn write(path: &Path, rows: u32) {
    let mut table = PerRank::create(path, &RUN).unwrap();
    let [host, wall, late_sender] = ["n1", "wall", "late_sender"].map(|text| table.text(text));
    let [receive, send, file] = ["MPI_Recv", "MPI_Send", "é.c"].map(|text| table.text(text));
    for number in 0..rows {
        let call = |operation, line| Call {
            operation,
            file: Some(file),
            line,
            function: None,
            callpath: Some(file),
        };
        let late = (number % 4 == 1).then(|| Late {
            rank: u32::MAX - 1,
            call: call(send, 0),
            computation: 1_500_000_000,
            waiting: 0,
            io: 1,
        });
        let row = |metric, value| Row {
            rank: number / 2,
            thread: 0,
            host,
            metric,
            time: u64::from(number),
            value,
        };
        let lost = Value::Lost {
            instances: 1 << 40,
            call: call(receive, 42),
            late,
        };
        let row = match number % 2 {
            0 => row(wall, Value::Time),
            _ => row(late_sender, lost),
        };
        table.push(&row).unwrap();
    }
    table.finish().unwrap();
}

type Cells = BTreeMap<String, Field>;

fn read(path: &Path) -> Vec<Cells> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let cells = rows.map(|row| row.unwrap().into_columns().into_iter().collect());
    cells.collect()
}

#[test]
fn what_is_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    write(&path, 200_001);
    let rows = read(&path);
    assert_eq!(rows.len(), 200_001);
    let text = |text: &str| Field::Str(text.into());
    for (number, row) in rows.iter().enumerate() {
        let number = number as u32;
        assert_eq!(row["rank"], Field::UInt(number / 2));
        assert_eq!(row["time_s"], Field::Double(f64::from(number) / 1e9));
        assert_eq!(row["host"], text("n1"));
        if number.is_multiple_of(2) {
            assert_eq!(
                (&row["kind"], &row["metric"]),
                (&text("time"), &text("wall"))
            );
            assert_eq!(
                (&row["operation"], &row["instances"]),
                (&Field::Null, &Field::Null)
            );
        } else {
            assert_eq!(row["kind"], text("lost"));
            assert_eq!(row["metric"], text("late_sender"));
            assert_eq!(row["operation"], text("MPI_Recv"));
            assert_eq!(row["instances"], Field::Long(1 << 40));
            assert_eq!(
                (&row["file"], &row["line"]),
                (&text("é.c"), &Field::UInt(42))
            );
            assert_eq!(
                (&row["function"], &row["callpath"]),
                (&Field::Null, &text("é.c"))
            );
        }
        if number % 4 == 1 {
            assert_eq!(row["cause_rank"], Field::UInt(u32::MAX - 1));
            assert_eq!(row["cause_operation"], text("MPI_Send"));
            assert_eq!(
                (&row["cause_file"], &row["cause_line"]),
                (&text("é.c"), &Field::Null)
            );
            assert_eq!(row["cause_computation_s"], Field::Double(1.5));
            assert_eq!(row["cause_wait_s"], Field::Double(0.0));
            assert_eq!(row["cause_io_s"], Field::Double(1e-9));
        } else {
            let causes = row.iter().filter(|cell| cell.0.starts_with("cause_"));
            assert!(causes.clone().count() == 8 && causes.clone().all(|c| *c.1 == Field::Null));
        }
    }
}

#[test]
fn groups_can_be_skipped_and_the_metadata_says_what_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    write(&path, 200_001);
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let metadata = reader.metadata();
    assert_eq!(metadata.num_row_groups(), 4);
    for group in metadata.row_groups() {
        // Statistics of the ranks, and each text once.
        assert!(
            group
                .column(0)
                .statistics()
                .unwrap()
                .max_bytes_opt()
                .is_some()
        );
        assert!(group.column(2).dictionary_page_offset().is_some());
    }
    let known = metadata.file_metadata();
    let values = known.key_value_metadata().unwrap().iter();
    let values: BTreeMap<_, _> = values
        .map(|pair| (pair.key.as_str(), pair.value.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(values["laggard.schema"], SCHEMA);
    assert_eq!(values["laggard.run_id"], "ab".repeat(16));
    assert_eq!(
        (values["laggard.program"], values["laggard.ranks"]),
        ("./app", "3")
    );
    // The specification lists every column.
    let specification = include_str!("../PER_RANK.md");
    for column in known.schema_descr().columns() {
        let row = format!("| `{}` |", column.name());
        assert!(specification.contains(&row), "{row}");
    }
    assert!(specification.contains(SCHEMA));
}

#[test]
fn the_same_rows_are_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["a.parquet", "b.parquet"].map(|name| directory.path().join(name));
    write(&one, 70_000);
    write(&other, 70_000);
    assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap());
}

#[test]
fn nothing_else_is_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    write(&path, 5);
    PerRank::check_target(&path).unwrap();
    write(&path, 7);
    assert_eq!(read(&path).len(), 7);
    let whole = fs::read(&path).unwrap();
    // Abandoned: the old file stays, and nothing else.
    let mut begun = PerRank::create(&path, &RUN).unwrap();
    begun.text("something");
    drop(begun);
    assert!(fs::read(&path).unwrap() == whole);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    for other in [
        &b"my thesis"[..],
        b"PAR1",
        b"PAR1 laggard-per-rank/1 \xff\xff\xff\xffPAR1",
        b"PAR1 laggard-per-rank/1 \x02\x00\x00\x00PAR1",
        &whole[..whole.len() - 1],
        &whole[1..],
    ] {
        fs::write(&path, other).unwrap();
        let error = PerRank::check_target(&path).unwrap_err().to_string();
        assert!(error.contains("is not a laggard table"), "{error}");
        assert!(PerRank::create(&path, &RUN).is_err());
        assert!(fs::read(&path).unwrap() == other);
    }
    fs::write(&path, "").unwrap();
    PerRank::check_target(&path).unwrap();
    assert!(PerRank::check_target(directory.path()).is_err());
    let nowhere = directory.path().join("missing/t.parquet");
    let error = PerRank::check_target(&nowhere).unwrap_err().to_string();
    assert!(error.contains("missing/t.parquet"), "{error}");
}

#[test]
fn links_are_refused_and_a_full_device_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link.parquet");
    let file = directory.path().join("file.parquet");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    write(&file, 3);
    let error = PerRank::check_target(&link).unwrap_err().to_string();
    assert!(error.contains("a symbolic link"), "{error}");
    assert_eq!(read(&file).len(), 3);
    let full = Path::new("/dev/full");
    PerRank::check_target(full).unwrap();
    let mut table = PerRank::create(full, &RUN).unwrap();
    let text = table.text("x");
    let row = Row {
        rank: 0,
        thread: 0,
        host: text,
        metric: text,
        time: 1,
        value: Value::Time,
    };
    table.push(&row).unwrap();
    let error = table.finish().unwrap_err().to_string();
    assert!(
        error.starts_with("cannot write /dev/full: No space left"),
        "{error}"
    );
}
