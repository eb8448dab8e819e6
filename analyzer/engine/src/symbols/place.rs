//! Selects the line of a call path that is *the* place of a call.

use std::collections::BTreeMap;

use laggard_report::SourceLocation;

use super::{Line, base_name};

/// Origin of a line's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's program, and libraries that it uses.
    Program,
    /// The standard library of C++, as far as it is in headers and becomes part of the program.
    Header,
    /// The run-time library of a language, whose files and streams the program uses.
    Runtime,
    /// MPI: the library, its bindings for other languages, this tool's collector.
    Binding,
    /// Code that starts a program: C library, dynamic linker, kernel.
    System,
}

/// Prefixes of the names of libraries that bind or implement MPI.
const BINDINGS: &[&str] = &[
    "libmpi",
    "libpmpi",
    "libmpich",
    "libfmpich",
    "liboshmem",
    "libopen-rte",
    "libopen-pal",
    "liblaggard",
    "MPI.cpython",
    "MPI.abi3",
];

/// Prefixes of the names of languages' run-time libraries.
const RUNTIMES: &[&str] = &[
    "libgfortran",
    "libquadmath",
    "libflang",
    "libFortran",
    "libifcore",
    "libnvf",
    "libstdc++",
    "libc++",
];

/// Prefixes of the names of system libraries.
const SYSTEM: &[&str] = &[
    "libc.so",
    "libc-",
    "libm.so",
    "libm-",
    "libmvec",
    "libpthread",
    "ld-linux",
    "ld-",
    "linux-vdso",
    "[",
];

/// Headers through which programs tell the collector of their regions.
const TOLD: &[&str] = &["laggard.f90", "laggard.h"];

/// Functions that call `main`.
const START: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "_dl_start_user",
];

impl Origin {
    /// Origin of a module, by its path.
    pub fn of_module(path: &str) -> Origin {
        let name = base_name(path);
        let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
        if begins(BINDINGS) || path.contains("/mpi4py/") {
            Origin::Binding
        } else if begins(RUNTIMES) {
            Origin::Runtime
        } else if begins(SYSTEM) {
            Origin::System
        } else {
            Origin::Program
        }
    }

    /// Origin of a line.
    pub fn of(line: &Line) -> Origin {
        if line.file.contains("/mpi4py/") || TOLD.contains(&base_name(&line.file)) {
            return Origin::Binding;
        }
        // As in `/usr/include/c++/12`, `/usr/include/x86_64-linux-gnu/c++/12` and `/opt/llvm/include/c++/v1`.
        let is_of_standard = |below: &str| below.split('/').take(2).any(|part| part == "c++");
        if line.file.split("/include/").skip(1).any(is_of_standard) {
            return Origin::Header;
        }
        let function = line.function.split('+').next().unwrap_or_default();
        if START.contains(&function) {
            return Origin::System;
        }
        Origin::of_module(&line.module)
    }
}

/// Index of the line where the program makes the call, in a call path innermost
/// first: the first line of the program that has file and line, else of C++'s headers, else the first
/// line of the program, else the first line. `None` for an empty path.
pub fn location(path: &[Line]) -> Option<usize> {
    let is_of = |line: &Line, origin| Origin::of(line) == origin && !line.is_region();
    let first = |origin| {
        path.iter()
            .position(|line| line.has_source() && is_of(line, origin))
    };
    first(Origin::Program)
        .or_else(|| first(Origin::Header))
        .or_else(|| path.iter().position(|line| is_of(line, Origin::Program)))
        .or((!path.is_empty()).then_some(0))
}

/// The shown lines of a call path, innermost first. The bindings' innermost lines, and the code
/// that starts the program, are left out, unless there is nothing else.
pub fn shown(path: &[Line]) -> impl Iterator<Item = &Line> {
    let place = location(path).map(|at| &path[at]);
    let is_binding = |line: &Line| Origin::of(line) == Origin::Binding;
    let in_binding = place.is_some_and(is_binding);
    path.iter()
        .skip_while(move |line| is_binding(line) && !in_binding)
        .filter(move |line| Origin::of(line) != Origin::System || Some(*line) == place)
}

/// A report's location for a call path, innermost first. Its call path begins with `main`, and has
/// the lines that are [`shown`].
pub fn source_location(path: &[Line]) -> SourceLocation {
    let Some(at) = location(path) else {
        return SourceLocation::default();
    };
    let place = &path[at];
    let mut callpath: Vec<String> = shown(path).map(Line::text).collect();
    callpath.reverse();
    SourceLocation {
        file: place.file.clone(),
        line: place.line,
        function: place.function.clone(),
        callpath,
        callers: Vec::new(),
    }
}

/// The place of a call path and its callers, innermost first.
pub fn callers(path: &[Line]) -> Vec<Line> {
    let Some(at) = location(path) else {
        return Vec::new();
    };
    let is_shown = |line: &&Line| Origin::of(line) != Origin::System && !line.is_region();
    let outer = path[at + 1..].iter().filter(is_shown);
    path[at..=at].iter().chain(outer).cloned().collect()
}

/// For each path (callers, innermost first): the callers that tell it from all other paths with the
/// same first line; none if that line is unique. Candidates are the callers at which another path
/// diverges. The result has as few as suffice, outer ones first.
pub fn told_by<K: Copy + Ord>(mut paths: Vec<(Vec<Line>, K)>) -> Vec<(K, Vec<Line>)> {
    let order = |line: &Line| (line.file.clone(), line.line, line.function.clone());
    paths.sort_by_cached_key(|(path, key)| (path.iter().map(order).collect::<Vec<_>>(), *key));
    let same = |a: &Line, b: &Line| order(a) == order(b);
    let common = |one: &[Line], other: &[Line]| {
        let lines = one.iter().zip(other);
        lines.take_while(|(a, b)| same(a, b)).count()
    };
    // Where each path diverges from the one before and the one after in the sorted order. It
    // diverges from a neighbour's neighbour no further out.
    let mut parted: Vec<Vec<usize>> = vec![Vec::new(); paths.len()];
    let mut note = |neighbours: &mut dyn Iterator<Item = (usize, usize)>| {
        let mut parts: Vec<usize> = Vec::new();
        for (at, neighbour) in neighbours {
            let shared = common(&paths[neighbour].0, &paths[at].0);
            parts.retain(|&part| part < shared);
            if (1..paths[at].0.len()).contains(&shared) {
                parts.push(shared);
            }
            parted[at].extend(&parts);
        }
    };
    note(&mut (1..paths.len()).map(|at| (at, at - 1)));
    note(&mut (1..paths.len()).rev().map(|at| (at - 1, at)));
    for parts in &mut parted {
        parts.sort_unstable();
        parts.dedup();
    }
    let label = |at: usize, callers: usize| -> Vec<Line> {
        let (path, parts) = (&paths[at].0, &parted[at]);
        let outer = &parts[parts.len() - callers.min(parts.len())..];
        outer.iter().map(|&part| path[part].clone()).collect()
    };
    let mut callers: Vec<usize> = vec![1; paths.len()];
    loop {
        let mut first: BTreeMap<Vec<_>, usize> = BTreeMap::new();
        let mut alike: Vec<usize> = Vec::new();
        for (at, (path, _)) in paths.iter().enumerate() {
            let place = path.first().into_iter().cloned();
            let name = place.chain(label(at, callers[at]));
            let name = name.map(|line| order(&line)).collect();
            let known = *first.entry(name).or_insert(at);
            if paths[known].0 != *path {
                alike.extend([known, at]);
            }
        }
        alike.retain(|&at| callers[at] < parted[at].len());
        alike.sort_unstable();
        alike.dedup();
        if alike.is_empty() {
            break;
        }
        alike.into_iter().for_each(|at| callers[at] += 1);
    }
    let keys = paths.iter().enumerate();
    keys.map(|(at, (_, key))| (*key, label(at, callers[at])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(function: &str, file: &str, line: u32, module: &str) -> Line {
        Line {
            function: function.to_owned(),
            file: file.to_owned(),
            line,
            module: module.into(),
            is_outlined: false,
        }
    }

    #[test]
    fn languages_write_for_the_program() {
        let runtime = |function, name| line(function, "", 0, name);
        for of_language in [
            runtime(
                "_gfortran_st_open+0x186",
                "/lib/x86_64-linux-gnu/libgfortran.so.5",
            ),
            runtime(
                "std::basic_filebuf::open+0x12",
                "/lib/x86_64-linux-gnu/libstdc++.so.6",
            ),
        ] {
            let stripped = line("app+0x12", "", 0, "/usr/bin/app");
            let path = [of_language.clone(), stripped.clone(), stripped];
            assert_eq!(location(&path), Some(1));
            // All is told, and there may be nothing else.
            assert_eq!(source_location(&path).callpath.len(), 3);
            assert_eq!(location(&path[..1]), Some(0));
        }
    }

    #[test]
    fn functions_of_mathematics_are_of_who_calls_them() {
        let path = [
            line(
                "log_inline",
                "/src/e_pow.c",
                95,
                "/lib/x86_64-linux-gnu/libm.so.6",
            ),
            line("late", "/src/lm.c", 7, "/home/u/app"),
        ];
        assert_eq!(location(&path), Some(1));
    }

    #[test]
    fn place_is_the_programs_own_line() {
        let path = [
            line("mpi_send_+0x12", "", 0, "/usr/lib/libmpi_mpifh.so.40"),
            line("Cdgesd2d+0x40", "", 0, "/usr/lib/libscalapack.so"),
            line("solve", "/src/solve.f90", 12, "/home/u/app"),
            line("MAIN__", "/src/main.f90", 3, "/home/u/app"),
            line("main", "/src/main.f90", 9, "/home/u/app"),
            line(
                "__libc_start_call_main+0x7a",
                "",
                0,
                "/lib/x86_64-linux-gnu/libc.so.6",
            ),
            line("_start+0x21", "", 0, "/home/u/app"),
        ];
        assert_eq!(location(&path), Some(2));
        let found = source_location(&path);
        assert_eq!((found.line, found.function.as_str()), (12, "solve"));
        assert_eq!(found.file, "/src/solve.f90");
        assert_eq!(
            found.callpath,
            [
                "main main.f90:9",
                "MAIN__ main.f90:3",
                "solve solve.f90:12",
                "Cdgesd2d+0x40"
            ]
        );
    }

    #[test]
    fn headers_of_the_standard_library_are_no_places() {
        let header = |file: &str| line("std::latch::wait", file, 77, "/home/u/app");
        let app = line("main", "/src/app.cpp", 9, "/home/u/app");
        for file in [
            "/usr/include/c++/12/latch",
            "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h",
            "/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/atomic_wait.h",
            "/opt/llvm/include/c++/v1/latch",
        ] {
            let found = source_location(&[header(file), app.clone()]);
            assert_eq!((found.file.as_str(), found.line), ("/src/app.cpp", 9));
            assert_eq!(found.callpath.len(), 2, "{found:?}");
        }
        // A program may have such a folder, too.
        let own = header("/src/c++/latch");
        assert_eq!(location(&[own, app]), Some(0));
        let other = line("start+0x1", "", 0, "/home/u/app");
        assert_eq!(
            location(&[other, header("/usr/include/c++/12/thread")]),
            Some(1)
        );
    }

    #[test]
    fn python_lines_win_over_their_binding() {
        let path = [
            line(
                "bcast",
                "/usr/lib/python3/dist-packages/mpi4py/util/pkl5.py",
                7,
                "",
            ),
            line("step", "app.py", 31, ""),
            line("<module>", "app.py", 40, ""),
        ];
        let found = source_location(&path);
        assert_eq!((found.file.as_str(), found.line), ("app.py", 31));
        assert_eq!(found.callpath, ["<module> app.py:40", "step app.py:31"]);
    }

    #[test]
    fn regions_are_no_places() {
        let path = [
            line("solve", "", 0, ""),
            line("exchange+0x1c", "", 0, "/home/u/app"),
            line("main+0x80", "", 0, "/home/u/app"),
        ];
        let found = source_location(&path);
        assert_eq!(found.function, "exchange+0x1c");
        assert_eq!(found.callpath, ["main+0x80", "exchange+0x1c", "solve"]);
    }

    #[test]
    fn without_lines_the_first_frame_of_the_program_is_the_place() {
        let path = [
            line("libmpi.so.40+0x99", "", 0, "/usr/lib/libmpi.so.40"),
            line("exchange+0x1c", "", 0, "/home/u/app"),
            line("main+0x80", "", 0, "/home/u/app"),
        ];
        let found = source_location(&path);
        assert_eq!(found.function, "exchange+0x1c");
        assert_eq!(found.callpath, ["main+0x80", "exchange+0x1c"]);
        let only = source_location(&path[..1]);
        assert_eq!(only.function, "libmpi.so.40+0x99");
        assert_eq!(source_location(&[]), SourceLocation::default());
    }

    fn told(paths: &[&[u32]]) -> Vec<Vec<u32>> {
        let path = |lines: &&[u32]| lines.iter().map(|&n| line("f", "a.c", n, "app")).collect();
        let paths: Vec<(Vec<Line>, usize)> = paths.iter().map(path).zip(0..).collect();
        let mut told = told_by(paths);
        told.sort_by_key(|(key, _)| *key);
        let lines = |told: (usize, Vec<Line>)| told.1.iter().map(|line| line.line).collect();
        told.into_iter().map(lines).collect()
    }

    #[test]
    fn callers_tell_paths_apart_and_are_few() {
        assert_eq!(told(&[&[1, 2, 3], &[4, 2, 3]]), [[0u32; 0], []]);
        // Equal paths count as one.
        assert_eq!(told(&[&[1, 2], &[1, 2]]), [[0u32; 0], []]);
        assert_eq!(told(&[&[1, 2, 9], &[1, 3, 9]]), [[2], [3]]);
        // Line 2 calls it twice; the callers of line 2 differ.
        let paths: [&[u32]; 3] = [&[1, 2, 5], &[1, 2, 6], &[1, 3, 5]];
        assert_eq!(told(&paths), [[5], [6], [3]]);
        // A recursion: the outermost caller does not suffice.
        let paths: [&[u32]; 4] = [&[1, 2, 7, 9], &[1, 2, 9], &[1, 3, 7, 9], &[1, 3, 9]];
        assert_eq!(told(&paths), [[2, 7], [2, 9], [3, 7], [3, 9]]);
        // A prefix of another path has no more callers.
        assert_eq!(told(&[&[1, 2], &[1, 2, 3]]), [vec![], vec![3]]);
    }
}
