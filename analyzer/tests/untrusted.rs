//! Files that somebody else made, and directories that somebody else filled: nothing is waited
//! for, read without end, followed, written through, or passed on to the terminal.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::*;

const EXAMPLE: &str = include_str!("../../formats/report/tests/example.json");
const TABLE: &str = include_str!("../../tests/fuzz/corpus/baseline/table");
/// Much longer than any of these takes.
const PATIENCE: Duration = Duration::from_secs(30);
const MS: u64 = 1_000_000;
/// All formats of `export` that need no library.
const FORMATS: [&str; 7] = [
    "parquet",
    "arrow",
    "perfetto",
    "flamegraph",
    "folded",
    "speedscope",
    "pprof",
];

/// A directory to run the command in.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn pipe(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.path(name)).status();
        assert!(made.unwrap().success());
    }

    /// A trace in which rank 1 waits, with these names of the file, the function, the program and
    /// the host.
    fn trace(&self, name: &str, names: [&str; 4]) {
        fs::create_dir(self.path(name)).unwrap();
        let mut r: Vec<Calls> = (0..2).map(|rank| Calls::named(rank, 0, 2, names)).collect();
        r[0].send(15, 1, 7, 20 * MS, 21 * MS);
        r[1].recv(22, 0, 7, 10 * MS, 22 * MS);
        r.iter_mut().for_each(|calls| calls.write(&self.path(name)));
    }

    fn start(&self, words: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laggard"));
        command.args(words).current_dir(&self.0);
        for name in ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "COLUMNS"] {
            command.env_remove(name);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs the command, which must end in time.
    #[track_caller]
    fn run(&self, words: &[&str]) -> Output {
        let mut child = self.start(words);
        let (began, id) = (Instant::now(), child.id());
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                stream.unwrap().read_to_end(&mut bytes).unwrap();
                bytes
            })
        };
        let stdout = read(stdout.map(|stream| Box::new(stream) as _));
        let stderr = read(stderr.map(|stream| Box::new(stream) as _));
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > PATIENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{words:?} (process {id}) does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        Output {
            status,
            stdout,
            stderr,
        }
    }

    /// Runs the command, which must refuse with one line, and gives that.
    #[track_caller]
    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(
            said.starts_with("laggard: ") && said.lines().count() == 1,
            "{words:?}: {said}"
        );
        said
    }

    #[track_caller]
    fn succeed(&self, words: &[&str]) -> Output {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        output
    }
}

const PLAIN: [&str; 4] = ["app.c", "work", "./app", "n1"];

/// Every word of a command line that names a file to read. `@` is the file, `T` a trace, `R` a
/// report, and `O` something to write.
const READERS: &[&[&str]] = &[
    &["show", "@"],
    &["show", "R", "--html", "O", "--picture", "@"],
    &["show", "R", "--html", "O", "--compare", "@"],
    &["show", "R", "--html", "O", "--scale", "@"],
    &["compare", "R", "@"],
    &["scale", "@", "R"],
    &["analyze", "T", "-o", "O", "--baseline", "@"],
    &["analyze", "T", "-o", "O", "--rules", "@"],
    &["analyze", "T", "-o", "O", "--operation-map", "@"],
    &["analyze", "@.otf2"],
    &["info", "@.otf2"],
    &["patterns", "--rules", "@"],
    &["baseline", "--show", "@"],
    &["baseline", "-o", "O", "--merge", "@", "@"],
    &["run", "--operation-map", "@", "true"],
    &["export", "T", "--to", "parquet", "-o", "O", "--report", "@"],
    &[
        "export", "T", "--to", "perfetto", "-o", "O", "--around", "1", "--report", "@",
    ],
];

#[test]
fn no_reader_waits_for_a_pipe_or_reads_without_end() {
    let home = Home::new();
    home.trace("T", PLAIN);
    home.write("R", EXAMPLE);
    home.pipe("pipe");
    home.pipe("pipe.otf2");
    for name in ["zero", "zero.otf2"] {
        symlink("/dev/zero", home.path(name)).unwrap();
    }
    home.write("liblaggard.so", "");
    for file in ["pipe", "zero"] {
        for words in READERS {
            let words: Vec<String> = words.iter().map(|word| word.replace('@', file)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            // The collector is not needed: the file is read first, or the library is not found.
            let said = home.refused(&words);
            let is_run = words[0] == "run";
            assert!(
                is_run || said.contains("not a regular file"),
                "{words:?}: {said}"
            );
        }
    }
    assert!(!home.path("O").exists());
}

#[test]
fn sizes_are_bounded() {
    let home = Home::new();
    home.trace("T", PLAIN);
    home.write("R", EXAMPLE);
    for name in ["large", "large.otf2"] {
        let file = fs::File::create(home.path(name)).unwrap();
        file.set_len(1 << 42).unwrap();
    }
    for words in READERS.iter().filter(|words| words[0] != "run") {
        let words: Vec<String> = words
            .iter()
            .map(|word| word.replace('@', "large"))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = home.refused(&words);
        assert!(
            said.contains("larger than") || said.contains("too long"),
            "{words:?}: {said}"
        );
    }
}

/// What lies in a directory that somebody else filled.
#[test]
fn a_directory_steers_nothing() {
    let home = Home::new();
    home.trace("T", PLAIN);
    home.write("other/report.json", EXAMPLE);
    home.write("R", EXAMPLE);
    home.pipe("pipe");
    let report = home.path("T/report.json");
    // A pipe or a device in place of the report: neither is read or written.
    for target in ["../pipe", "/dev/zero", "/dev/null"] {
        symlink(target, &report).unwrap();
        for words in [
            &["show", "T"][..],
            &["analyze", "T"],
            &["compare", "R", "T"],
        ] {
            home.refused(words);
        }
        assert!(report.symlink_metadata().unwrap().is_symlink());
        fs::remove_file(&report).unwrap();
    }
    home.pipe("T/report.json");
    home.refused(&["show", "T"]);
    home.refused(&["analyze", "T"]);
    fs::remove_file(&report).unwrap();
    // A link to another report, or to what is not there yet.
    for target in ["../other/report.json", "../other/new.json"] {
        symlink(target, &report).unwrap();
        assert!(home.refused(&["analyze", "T"]).contains("a symbolic link"));
        assert_eq!(home.read("other/report.json"), EXAMPLE);
        assert!(!home.path("other/new.json").exists());
        fs::remove_file(&report).unwrap();
    }
    symlink("../other/report.json", &report).unwrap();
    assert!(
        home.refused(&["show", "T"])
            .contains("a link out of its directory")
    );
    fs::remove_file(&report).unwrap();
    // A location that is elsewhere is not read, and the report says so.
    let location = home.path("T/rank000001.thread000.lgt");
    fs::rename(&location, home.path("moved")).unwrap();
    symlink("../moved", &location).unwrap();
    let said = home.succeed(&["analyze", "T"]).stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("a link out of the trace directory"), "{said}");
    // One that stays in the directory is.
    fs::rename(home.path("moved"), home.path("T/moved")).unwrap();
    fs::remove_file(&location).unwrap();
    symlink("moved", &location).unwrap();
    let said = String::from_utf8(home.succeed(&["analyze", "T"]).stdout).unwrap();
    assert!(
        said.contains("2 ranks") && !said.contains("a link out"),
        "{said}"
    );
}

/// Files of an archive are opened by a library, by their names.
#[test]
fn an_archive_has_regular_files_only() {
    let home = Home::new();
    home.trace("T", PLAIN);
    home.succeed(&["export", "T", "--to", "otf2", "-o", "A", "-q"]);
    let anchor = "A/traces.otf2";
    home.succeed(&["info", anchor]);
    for name in ["A/traces/0.evt", "A/traces/1.def", "A/traces.def"] {
        let path = home.path(name);
        fs::rename(&path, home.path("kept")).unwrap();
        for is_pipe in [true, false] {
            match is_pipe {
                true => home.pipe(name),
                false => symlink(home.path("kept"), &path).unwrap(),
            }
            let said = home.refused(&["info", anchor]);
            assert!(said.contains("no regular file"), "{said}");
            fs::remove_file(&path).unwrap();
        }
        fs::rename(home.path("kept"), path).unwrap();
    }
    home.succeed(&["info", anchor]);
}

#[test]
fn sources_do_not_leave_their_directory() {
    const SECRET: &str = "the secret of this line\n";
    let home = Home::new();
    let lines = |text: &str| text.repeat(30);
    home.write("elsewhere/secret.c", &lines(SECRET));
    home.write("src/secret.txt", &lines(SECRET));
    home.write("src/below/real.c", &lines("int shown;\n"));
    let page = |target: &str| {
        let source = home.path("src/app.c");
        let _ = fs::remove_file(&source);
        symlink(target, &source).unwrap();
        let _ = fs::remove_dir_all(home.path("T"));
        home.trace(
            "T",
            [
                "app.c",
                "work",
                home.path("src/app").to_str().unwrap(),
                "n1",
            ],
        );
        home.succeed(&["analyze", "T", "-q", "--all"]);
        home.succeed(&["show", "T", "--html", "page.html"]);
        home.read("page.html")
    };
    assert!(page("below/real.c").contains("int shown;"));
    for target in [
        "../elsewhere/secret.c",
        "secret.txt",
        "/etc/passwd",
        "/dev/zero",
    ] {
        let page = page(target);
        assert!(
            !page.contains("the secret of") && !page.contains("root:"),
            "{target}"
        );
    }
}

/// A table whose times an axis can show.
fn drawable() -> String {
    TABLE.replace("5e-324", "1e-6").replace("1.7e308", "2e-6")
}

/// Drawn on an axis of all numbers it would take for ever.
#[test]
fn times_that_no_axis_has_are_refused() {
    let home = Home::new();
    home.write("B", TABLE);
    let said = home.refused(&["baseline", "--show", "B", "--svg", "O"]);
    assert!(
        said.contains("one axis") && !home.path("O").exists(),
        "{said}"
    );
}

/// Every word of a command line that names a file to write, and what the former file may be.
const WRITERS: &[(&[&str], &str)] = &[
    (&["analyze", "T", "-q", "-o", "@"], EXAMPLE),
    (&["analyze", "T", "-q", "-o", "O1", "--per-rank", "@"], ""),
    (&["show", "R", "--html", "@"], ""),
    (&["compare", "R", "R", "-o", "@"], ""),
    (&["compare", "R", "R", "--svg", "@"], "<svg></svg>"),
    (&["scale", "R", "R2", "-o", "@"], ""),
    (&["scale", "R", "R2", "--svg", "@"], "<svg></svg>"),
    (&["baseline", "-o", "@", "--merge", "B", "B"], TABLE),
    (&["baseline", "--show", "B", "--svg", "@"], "<svg></svg>"),
    (&["baseline", "--show", "B", "--parquet", "@"], ""),
    (&["export", "T", "-q", "--to", "parquet", "-o", "@"], ""),
    (&["export", "T", "-q", "--to", "otf2", "-o", "@"], ""),
    (&["export", "T", "-q", "--to", "folded", "-o", "@"], ""),
    (&["export", "T", "-q", "--to", "perfetto", "-o", "@"], ""),
];

#[test]
fn nothing_is_written_through_links() {
    let home = Home::new();
    home.trace("T", PLAIN);
    home.write("R", EXAMPLE);
    let larger = EXAMPLE.replacen("\"ranks\": 4", "\"ranks\": 8", 1);
    home.write("R2", &larger);
    home.write("B", &drawable());
    for (words, former) in WRITERS {
        let run = |file: &str| {
            let words: Vec<String> = words.iter().map(|word| word.replace('@', file)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            home.run(&words)
        };
        // To a file that might be replaced, to one that is not there, to no file.
        home.write("target", former);
        for target in ["target", "nowhere", "."] {
            symlink(target, home.path("link")).unwrap();
            let output = run("link");
            assert_eq!(
                output.status.code(),
                Some(1),
                "{words:?} to {target}: {output:?}"
            );
            assert!(home.path("link").symlink_metadata().unwrap().is_symlink());
            assert_eq!(home.read("target"), *former, "{words:?}");
            assert!(!home.path("nowhere").exists(), "{words:?}");
            fs::remove_file(home.path("link")).unwrap();
        }
        // By its own name it is written.
        let output = run("new");
        assert!(output.status.success(), "{words:?}: {output:?}");
        let made = home.path("new");
        match made.is_dir() {
            true => fs::remove_dir_all(made).unwrap(),
            false => fs::remove_file(made).unwrap(),
        }
    }
    let left = fs::read_dir(&home.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left
        .filter(|name| name.to_string_lossy().ends_with(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Controls of both kinds, what turns text around, what ends lines elsewhere.
const STEERING: &str = "\u{1b}[31m\u{1b}]0;owned\u{7}\u{9b}2J\u{7f}\u{202e}\u{2066}\u{2028}\u{1}";

#[track_caller]
fn assert_printable(bytes: &[u8], what: &[&str]) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let odd = text
        .chars()
        .find(|&c| c != '\n' && c != '\t' && laggard_files::is_steering(c));
    assert!(odd.is_none(), "{what:?}: {odd:?} in {text:?}");
}

#[test]
fn nothing_steers_the_terminal() {
    let home = Home::new();
    let hostile = |name: &str| format!("{name}{STEERING}");
    let names = ["app.c", "work", "./app", "n1"].map(hostile);
    home.trace("T", names.each_ref().map(String::as_str));
    let odd = hostile("odd");
    fs::create_dir(home.path(&odd)).unwrap();
    home.write("rules.toml", &format!("[{odd}]\n"));
    home.write("map.toml", &format!("\"spin\" = \"{odd}\"\n"));
    let escaped = hostile("m").replace(char::is_control, "\\u0007");
    let description = format!("\"description\":\"{escaped}");
    home.write(
        "table.json",
        &drawable().replacen("\"description\":\"", &description, 1),
    );
    let around = |words: &[&str], code: i32| {
        let output = home.run(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        assert_printable(&output.stdout, words);
        assert_printable(&output.stderr, words);
    };
    around(&["analyze", "T", "--all"], 0);
    around(&["analyze", "T", "--all", "--format", "json"], 0);
    for words in [
        &["info", "T"][..],
        &["dump", "T"],
        &["show", "T"],
        &["compare", "T", "T"],
        &["compare", "T", "T", "--format", "json"],
        &["patterns", "--rules", "rules.toml"],
        &["baseline", "--show", "table.json"],
    ] {
        around(words, 0);
    }
    // Names that do not come from files.
    let report = format!("{odd}.json");
    for words in [
        &["show", &report][..],
        &["show", &odd],
        &["analyze", &odd],
        &["info", &odd],
        &["dump", &odd],
        &["export", &odd, "--to", "folded", "-o", "O"],
        &["compare", &report, &report],
        &["scale", &report, &report],
        &["analyze", "T", "--operation-map", "map.toml"],
        &["analyze", "T", "--operation-map", &odd],
        &["baseline", "--show", &odd],
        &["run", "-o", &odd, "--", &odd],
    ] {
        around(words, 1);
    }
    for words in [
        &[odd.as_str()][..],
        &["patterns", "--explain", &odd],
        &["show", "T", &odd],
        &["dump", "T", "--rank", &odd],
    ] {
        around(words, 2);
    }
    // What is written for line formats and XML.
    for format in FORMATS {
        let output = format!("{odd}.{format}");
        around(&["export", "T", "--to", format, "-o", &output], 0);
        if ["flamegraph", "folded"].contains(&format) {
            assert_printable(&fs::read(home.path(&output)).unwrap(), &[format]);
        }
    }
    around(&["show", "T", "--html", "page.html"], 0);
    assert_printable(home.read("page.html").as_bytes(), &["page"]);
    around(&["compare", "T", "T", "--svg", "c.svg", "-o", "c.json"], 0);
    assert_printable(home.read("c.svg").as_bytes(), &["compare"]);
    around(&["baseline", "--show", "table.json", "--svg", "b.svg"], 0);
    assert_printable(home.read("b.svg").as_bytes(), &["baseline"]);
    // JSON that is printed says the same as the file.
    let printed = home
        .succeed(&["analyze", "T", "--all", "--format", "json"])
        .stdout;
    let of = |bytes: &[u8]| {
        let mut value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        value.as_object_mut().unwrap().remove("agents");
        value
    };
    let printed = of(&printed);
    assert_eq!(printed, of(home.read("T/report.json").as_bytes()));
    assert_eq!(printed["run"]["program"], names[2].as_str());
}

/// As a newer version may write them.
#[test]
fn unknown_calls_are_exported() {
    let home = Home::new();
    fs::create_dir(home.path("T")).unwrap();
    let mut r = ranks(2);
    for (n, operation) in [0, 999, 1000, 1023, 8191, 8192, 9999, u16::MAX]
        .into_iter()
        .enumerate()
    {
        let at = 100 * MS * n as u64;
        for rank in &mut r {
            rank.call(1, send(operation, 1 - rank.rank as i32, 0), at, at + MS);
            rank.call(
                2,
                receive(operation, 1 - rank.rank as i32, 0),
                at + MS,
                at + 20 * MS,
            );
            rank.collective(3, operation, 0, at + 30 * MS, at + 40 * MS);
        }
    }
    r.iter_mut().for_each(|calls| calls.write(&home.path("T")));
    for format in FORMATS.into_iter().chain(["otf2"]) {
        home.succeed(&["export", "T", "--to", format, "-o", format]);
        assert!(Path::new(&home.path(format)).exists());
    }
    for words in [
        &["analyze", "T", "--all"][..],
        &["info", "T"],
        &["dump", "T"],
    ] {
        home.succeed(words);
    }
}
