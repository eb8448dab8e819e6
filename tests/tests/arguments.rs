//! Null and wild pointers. If the library answers a call with an error, it does so with the
//! collector, too. If the library crashes, the collector makes it no worse.
//!
//! The program is made from the table of calls: each row correct, with a null and a wild pointer in
//! each place, and with them in all places. One run tells the results of all. If a result differs
//! with the collector, previous calls may have left the library in another state. Then the call's
//! result in a process of its own counts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;

use laggard_tests::mpi::Mpi;
use laggard_tests::product::Bench;

/// A row of the table of calls.
struct Row {
    name: &'static str,
    /// Name and type of each parameter.
    parameters: &'static [(&'static str, &'static str)],
    result: &'static str,
}

macro_rules! rows {
    ($($number:literal $name:ident $generic:ident $shape:ident $class:ident($($meaning:tt)*)
        ($($p:ident: $t:ty),*) -> $r:ty;)*) => {
        &[$(Row {
            name: stringify!($name),
            parameters: &[$((stringify!($p), stringify!($t))),*],
            result: stringify!($r),
        }),*]
    };
}

const STANDARD: &[Row] = laggard_trace::mpi_calls!(rows);
const EXTENSIONS: &[Row] = laggard_trace::mpi_extension_calls!(rows);
const PERSISTENT: &[Row] = laggard_trace::mpi_4_persistent_calls!(rows);

/// Calls that end the program (some only once MPI runs), start other programs or wait for them.
const LEFT_OUT: [&str; 10] = [
    "MPI_Abort",
    "MPI_Comm_accept",
    "MPI_Comm_connect",
    "MPI_Comm_join",
    "MPI_Comm_spawn",
    "MPI_Comm_spawn_multiple",
    "MPI_Finalize",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Win_start",
];

/// Rows that the chosen MPI has.
fn rows() -> impl Iterator<Item = &'static Row> {
    let more = match Mpi::chosen() {
        Mpi::OpenMpi => EXTENSIONS,
        Mpi::Mpich => PERSISTENT,
    };
    let all = STANDARD.iter().chain(more);
    all.filter(|row| !LEFT_OUT.contains(&row.name))
}

impl Row {
    fn has(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|(name, _)| *name == parameter)
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        let name = self.name.split_once('_').map_or("", |(_, name)| name);
        names.iter().any(|begin| name.starts_with(begin))
    }

    fn ends(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| self.name.ends_with(end))
    }

    /// Needs of its call, in the order of `struct row` in the program.
    fn needs(&self) -> [bool; 7] {
        let is_setup = self.ends(&["_init"]);
        [
            self.has("source") && !is_setup,
            self.has("dest") && !is_setup,
            self.is_one_of(&["Mrecv", "Imrecv", "Message"]),
            self.is_one_of(&["Wait", "Test", "Request_get", "Cancel"]),
            self.is_one_of(&["Start", "Request_free"]),
            self.ends(&["_free", "_close", "_disconnect"]),
            self.has("target_rank") || self.is_one_of(&["Win_flush", "Win_unlock_all", "Win_sync"]),
        ]
    }

    /// Numbers of the parameters that are pointers, or handles, which are pointers in Open MPI.
    fn places(&self) -> impl Iterator<Item = usize> {
        let is_handle = |t: &str| t.starts_with("MPI_") && !is_number(t) && !is_function(t);
        let parameters = self.parameters.iter().enumerate();
        parameters
            .filter(move |(_, (_, t))| t.starts_with('*') || is_handle(t))
            .map(|(number, _)| number)
    }
}

fn is_number(t: &str) -> bool {
    ["c_int", "MPI_Aint", "MPI_Count", "MPI_Offset"].contains(&t)
}

fn is_function(t: &str) -> bool {
    t.ends_with("_function")
}

/// A type of the table, wherever the compiler puts blanks.
fn plain(t: &str) -> String {
    t.replace("* ", "*")
}

/// A type of the table in C.
fn in_c(t: &str) -> String {
    if let Some(rest) = t.strip_prefix("*const ") {
        return format!("const {} *", in_c(rest));
    }
    if t == "*mut [c_int; 3]" {
        return "int (*)[3]".to_owned();
    }
    if let Some(rest) = t.strip_prefix("*mut ") {
        return format!("{} *", in_c(rest));
    }
    match t {
        "c_void" => "void".to_owned(),
        "c_char" => "char".to_owned(),
        "c_int" => "int".to_owned(),
        t if is_function(t) => format!("{t} *"),
        t => t.to_owned(),
    }
}

/// A correct argument, in C.
fn good(row: &Row, at: usize) -> String {
    let (name, t) = row.parameters[at];
    let t = plain(t);
    let names = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match t.as_str() {
        "c_int" if names(&["outsize", "insize", "max"]) => "64",
        "c_int" if names(&["count", "size", "dims", "length", "level", "unit"]) => "1",
        "c_int" if name.starts_with('n') => "1",
        "c_int" if names(&["tag"]) && row.has("dest") && !names(&["recv"]) => "OUTGOING",
        "c_int" if names(&["tag"]) => "INCOMING",
        "c_int" if names(&["lock_type"]) => "MPI_LOCK_SHARED",
        "c_int" if names(&["amode"]) => "MPI_MODE_CREATE | MPI_MODE_RDWR",
        "c_int" if names(&["whence"]) => "MPI_SEEK_SET",
        "MPI_Aint" if names(&["size", "extent"]) => "64",
        "MPI_Comm" if row.name.contains("eighbor_") => "cart",
        "MPI_Comm" if row.is_one_of(&["Cart_", "Cartdim"]) && name == "comm" => "cart",
        "MPI_Comm" if row.is_one_of(&["Dist_graph_n"]) => "dist_graph",
        "MPI_Comm" if row.is_one_of(&["Graph"]) && name == "comm" => "graph",
        "MPI_Comm" => "comm",
        "MPI_Datatype" => "MPI_INT",
        "MPI_Errhandler" => "MPI_ERRORS_RETURN",
        "MPI_File" => "file",
        "MPI_Group" => "group",
        "MPI_Info" => "MPI_INFO_NULL",
        "MPI_Message" => "message",
        "MPI_Op" => "MPI_SUM",
        "MPI_Request" => "requests[0]",
        "MPI_Win" => "win",
        "*mut MPI_Comm" => "&new_comm",
        "*mut MPI_Datatype" if !names(&["array"]) => "&new_type",
        "*mut MPI_Errhandler" => "&new_errhandler",
        "*mut MPI_File" => "&new_file",
        "*mut MPI_Group" => "&new_group",
        "*mut MPI_Info" => "&new_info",
        "*mut MPI_Message" => "&message",
        "*mut MPI_Op" => "&new_op",
        "*mut MPI_Request" if !names(&["array"]) => "&request",
        "*mut MPI_Request" => "requests",
        "*mut MPI_Win" => "&new_win",
        "*mut MPI_Datatype" | "*const MPI_Datatype" => "types",
        "*const MPI_Info" => "infos",
        "*mut MPI_Status" | "*const MPI_Status" => "statuses",
        "*mut MPI_Count" => "&number",
        "*mut MPI_Offset" => "&offset",
        "*mut MPI_Aint" | "*const MPI_Aint" => return format!("addresses[{at}]"),
        "*mut c_int" => return format!("integers[{at}]"),
        "*const c_int" if names(&["displ", "rank", "period", "coords", "remain"]) => "zeros",
        "*const c_int" if names(&["sources", "destinations", "edges", "targets"]) => "zeros",
        "*const c_int" => "ones",
        "*const c_char" if row.is_one_of(&["File_open"]) => "file_name",
        "*const c_char" | "*mut c_char" => "name",
        "*const c_void" | "*mut c_void" => return format!("buffers[{}]", at % 6),
        t if t.starts_with('*') => return format!("buffers[{}]", at % 6),
        _ => "0",
    }
    .to_owned()
}

/// The functions that make the calls, and the table of them. A place is a pointer's number among
/// the row's pointers.
fn source() -> String {
    let (mut functions, mut table) = (String::new(), String::new());
    for row in rows() {
        let name = row.name;
        let places: Vec<usize> = row.places().collect();
        let argument = |at: usize| match places.iter().position(|&place| place == at) {
            Some(place) => {
                let t = in_c(&plain(row.parameters[at].1));
                format!("ARGUMENT({place}, {t}, {})", good(row, at))
            }
            None => good(row, at),
        };
        let arguments: Vec<String> = (0..row.parameters.len()).map(argument).collect();
        let call = format!("{name}({})", arguments.join(", "));
        let body = match row.result {
            "c_int" if !name.ends_with("_c2f") => format!("return {call};"),
            _ => format!("{call}; return NOT_AN_ERROR_CODE;"),
        };
        let _ = writeln!(functions, "static int call_{name}(void) {{ {body} }}");
        let needs = row.needs().map(|need| u8::from(need).to_string());
        let (count, needs) = (places.len(), needs.join(", "));
        let _ = writeln!(table, "    {{\"{name}\", call_{name}, {count}, {needs}}},");
    }
    format!("{functions}static const struct row rows[] = {{\n{table}}};\n")
}

/// Name and end of each call, by number.
type Ends = BTreeMap<u32, (String, String)>;

struct Probes<'a> {
    bench: &'a Bench,
    program: &'a OsStr,
}

impl Probes<'_> {
    /// The ends of the calls with these numbers. If a process ends in one of them, another goes on
    /// with the next.
    fn ends(&self, numbers: std::ops::Range<u32>, is_recorded: bool) -> Ends {
        let (mut ends, mut from) = (Ends::new(), numbers.start);
        while from < numbers.end {
            let words = [from, numbers.end].map(|number| number.to_string());
            let words = [self.program, words[0].as_ref(), words[1].as_ref()];
            let trace = self.bench.path("trace");
            let _ = fs::remove_dir_all(&trace);
            let run = match is_recorded {
                true => self.bench.traced(1, &words, "trace"),
                false => self.bench.plain(1, &words),
            };
            let outcome = run.run();
            assert!(!outcome.timed_out, "{outcome}");
            assert_eq!(trace.exists(), is_recorded, "{outcome}");
            let before = from;
            for line in outcome.stdout.lines() {
                if let Some(end) = line.strip_prefix("= ") {
                    if let Some(of_last) = ends.get_mut(&(from - 1)) {
                        of_last.1 = end.to_owned();
                    }
                } else if let Some((number, what)) = line.split_once(' ')
                    && number.parse() == Ok(from)
                {
                    ends.insert(from, (what.to_owned(), "died".to_owned()));
                    from += 1;
                }
            }
            assert!(from > before, "no call was made: {outcome}");
        }
        ends
    }
}

/// Calls per process, so that a state spoiled by some calls does not hide the results of others.
const STEP: u32 = 1000;

#[test]
fn null_and_wild_pointers() {
    let bench = Bench::beside("arguments");
    fs::write(bench.path("rows.h"), source()).expect("the rows");
    let include = format!("-I{}", bench.dir.display());
    let cflags = [&include, "-w", "-O0"];
    let program = bench.compile("attacks/arguments.c", &cflags, &[]);
    let probes = Probes {
        bench: &bench,
        program: program.as_os_str(),
    };
    let per_row = |row: &Row| 3 + 2 * row.places().count() as u32;
    let all: u32 = rows().map(per_row).sum();
    let (mut good, mut errors, mut differing) = (0, 0, Vec::new());
    let mut others = BTreeMap::<String, u32>::new();
    for from in (0..all).step_by(STEP as usize) {
        let numbers = from..all.min(from + STEP);
        let [plain, recorded] = [false, true].map(|on| probes.ends(numbers.clone(), on));
        assert_eq!(plain.len(), numbers.len());
        for (number, (what, end)) in plain {
            let is_code = end.parse::<i32>().is_ok();
            good += u32::from(is_code && what.ends_with("place -1 value 0") && end == "0");
            errors += u32::from(is_code && end != "0");
            if !is_code {
                *others.entry(end.clone()).or_default() += 1;
            }
            if recorded.get(&number).map(|(_, end)| end) != Some(&end) {
                differing.push(number);
            }
        }
    }
    eprintln!(
        "{all} calls, {good} rows succeed, {errors} calls are answered with an error, {others:?}; {} again",
        differing.len()
    );
    assert!(
        good > 150 && errors > 500,
        "calls do not do what they are for"
    );
    let again = differing.into_iter().filter_map(|number| {
        let [plain, recorded] = [false, true].map(|on| probes.ends(number..number + 1, on));
        (plain != recorded).then(|| format!("{plain:?} with the collector {recorded:?}"))
    });
    let wrong: Vec<String> = again.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
