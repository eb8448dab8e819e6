//! Resolves addresses of programs compiled with `cc`.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol};

use super::*;

const SOURCE: &str = r#"
volatile int sink;
static inline __attribute__((always_inline)) void inner(int x) {
    sink = x;
}
__attribute__((noinline)) void outer(int x) {
    inner(x);
    sink++;
}
int main(void) {
    outer(7);
    return 0;
}
"#;

struct Program {
    directory: tempfile::TempDir,
}

impl Program {
    fn new(options: &[&str]) -> Program {
        Program::of(SOURCE, "cc", options)
    }

    fn of(source: &str, compiler: &str, options: &[&str]) -> Program {
        let program = Program {
            directory: tempfile::tempdir().unwrap(),
        };
        std::fs::write(program.file("app.c"), source).unwrap();
        program.run(
            compiler,
            &[&["-O2", "app.c", "-o", "app"], options].concat(),
        );
        program
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, command: &str, arguments: &[&str]) {
        let mut command = Command::new(command);
        command.args(arguments).current_dir(self.directory.path());
        assert!(command.status().unwrap().success(), "{command:?}");
    }

    fn path(&self) -> String {
        self.file("app").to_str().unwrap().to_owned()
    }

    fn build_id(&self) -> Vec<u8> {
        find::build_id(&module::map(&self.file("app")).unwrap()).unwrap()
    }

    fn address(&self, name: &str) -> u64 {
        let bytes = std::fs::read(self.file("app")).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let symbol = object.symbols().find(|symbol| symbol.name() == Ok(name));
        symbol.expect(name).address()
    }

    /// An address of `outer` within the inlined `inner`.
    fn inlined(&self, symbols: &mut Symbols) -> Option<u64> {
        let start = self.address("outer");
        (start..start + 16).find(|&address| {
            symbols
                .resolve(&self.path(), &self.build_id(), address)
                .len()
                > 1
        })
    }
}

fn without_roots() -> Symbols {
    Symbols::with_debug_roots(Vec::new())
}

fn ids(symbols: &Symbols) -> Vec<String> {
    symbols.anomalies().into_iter().map(|a| a.id).collect()
}

#[test]
fn inlined_functions_are_lines_of_their_own() {
    let program = Program::new(&["-g", "-Wl,--build-id"]);
    let mut symbols = without_roots();
    let address = program.inlined(&mut symbols).expect("inlined code");
    let lines = symbols.resolve(&program.path(), &program.build_id(), address);
    let texts: Vec<String> = lines.iter().map(Line::text).collect();
    assert_eq!(texts, ["inner app.c:4", "outer app.c:7"]);
    assert!(lines[0].file.ends_with("/app.c") && Path::new(&lines[0].file).is_absolute());
    assert_eq!(ids(&symbols), Vec::<String>::new());
}

#[test]
fn without_line_numbers_symbols_are_used() {
    let program = Program::new(&["-Wl,--build-id"]);
    let mut symbols = without_roots();
    let lines = symbols.resolve(&program.path(), &[], program.address("outer") + 3);
    assert_eq!(lines[0].text(), "outer+0x3");
    assert_eq!(ids(&symbols), ["no_line_numbers"]);
}

#[test]
fn compressed_lines_are_found_and_sizes_that_cannot_be_are_not_believed() {
    let program = Program::new(&["-g", "-gz=zlib", "-Wl,--build-id"]);
    let address = program.address("outer");
    let resolve = || {
        let mut symbols = without_roots();
        let lines = symbols.resolve(&program.path(), &program.build_id(), address + 3);
        (lines[0].has_source(), ids(&symbols))
    };
    assert_eq!(resolve(), (true, Vec::new()));
    let mut bytes = std::fs::read(program.file("app")).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let section = object.section_by_name(".debug_line").unwrap();
    // ELF's header of a compressed section: type, reserved, size.
    let size_at = section.file_range().unwrap().0 as usize + 8;
    bytes[size_at..size_at + 8].copy_from_slice(&(4u64 << 30).to_le_bytes());
    std::fs::write(program.file("app"), bytes).unwrap();
    assert_eq!(resolve(), (false, vec!["module_unreadable".to_owned()]));
}

#[test]
fn without_symbols_the_module_is_named() {
    let program = Program::new(&["-Wl,--build-id"]);
    let address = program.address("outer");
    program.run("strip", &["app"]);
    let lines = without_roots().resolve(&program.path(), &program.build_id(), address);
    assert_eq!(lines[0].text(), format!("app+{address:#x}"));
}

#[test]
fn another_build_is_not_used() {
    let program = Program::new(&["-g", "-Wl,--build-id"]);
    let mut symbols = without_roots();
    let address = program.address("outer");
    let lines = symbols.resolve(&program.path(), &[1, 2, 3], address);
    assert_eq!(lines[0].text(), format!("app+{address:#x}"));
    assert_eq!(ids(&symbols), ["module_changed"]);
}

#[test]
fn debug_file_is_found_by_link_and_by_build_id() {
    let program = Program::new(&["-g", "-Wl,--build-id"]);
    let address = program.address("outer");
    program.run("objcopy", &["--only-keep-debug", "app", "app.debug"]);
    program.run(
        "objcopy",
        &["--strip-all", "--add-gnu-debuglink=app.debug", "app"],
    );
    let (path, id) = (program.path(), program.build_id());
    let by_link = without_roots().resolve(&path, &id, address);
    assert_eq!(by_link.last().unwrap().function, "outer");

    let hex: String = id[1..].iter().map(|byte| format!("{byte:02x}")).collect();
    let below = program.file(&format!("debug/.build-id/{:02x}", id[0]));
    std::fs::create_dir_all(&below).unwrap();
    std::fs::rename(
        program.file("app.debug"),
        below.join(format!("{hex}.debug")),
    )
    .unwrap();
    let lost = without_roots().resolve(&path, &id, address);
    assert_eq!(lost[0].text(), format!("app+{address:#x}"));
    let roots = || vec![program.file("debug")];
    let mut symbols = Symbols::with_debug_roots(roots());
    assert_eq!(
        symbols
            .resolve(&path, &id, address)
            .last()
            .unwrap()
            .function,
        "outer"
    );
    assert_eq!(ids(&symbols), Vec::<String>::new());

    // The program itself is not needed any more.
    std::fs::remove_file(program.file("app")).unwrap();
    let mut symbols = Symbols::with_debug_roots(roots());
    assert_eq!(
        symbols
            .resolve(&path, &id, address)
            .last()
            .unwrap()
            .function,
        "outer"
    );
    assert_eq!(ids(&symbols), Vec::<String>::new());
}

#[test]
fn linked_debug_file_without_build_id_needs_the_right_checksum() {
    let program = Program::new(&["-g", "-Wl,--build-id=none"]);
    let address = program.address("outer");
    program.run("objcopy", &["--only-keep-debug", "app", "app.debug"]);
    program.run(
        "objcopy",
        &["--strip-all", "--add-gnu-debuglink=app.debug", "app"],
    );
    let resolve = || without_roots().resolve(&program.path(), &[], address);
    assert_eq!(resolve().last().unwrap().function, "outer");
    let mut bytes = std::fs::read(program.file("app.debug")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(program.file("app.debug"), bytes).unwrap();
    assert_eq!(resolve()[0].text(), format!("app+{address:#x}"));
}

#[test]
fn what_is_no_module_is_said_once() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    std::fs::write(&text, "no ELF file").unwrap();
    let mut symbols = without_roots();
    for offset in [1, 2] {
        symbols.resolve("/nonexistent/app", &[], offset);
        symbols.resolve(text.to_str().unwrap(), &[], offset);
        symbols.resolve("[vdso]", &[], offset);
        symbols.resolve("/nonexistent/libmpi.so.40", &[], offset);
        symbols.resolve(directory.path().to_str().unwrap(), &[], offset);
    }
    let mut found = ids(&symbols);
    found.sort();
    assert_eq!(
        found,
        ["module_missing", "module_unreadable", "module_unreadable"]
    );
}

/// A trace may name anything as a module: only regular files are opened.
#[test]
fn pipes_and_devices_are_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&pipe, &link).unwrap();
    // A reader that closes the pipe would kill an existing writer.
    let mut options = std::fs::OpenOptions::new();
    let mut writer = options.read(true).write(true).open(&pipe).unwrap();
    std::io::Write::write_all(&mut writer, b"unread").unwrap();
    let names = [
        pipe.as_path(),
        &link,
        Path::new("/dev/zero"),
        Path::new("/dev/tty"),
    ];
    for name in names {
        let name = name.to_str().unwrap();
        let error = module::map(Path::new(name)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{name}");
        let mut symbols = without_roots();
        let lines = symbols.resolve(name, &[1, 2, 3], 16);
        assert!(lines[0].text().ends_with("+0x10"), "{name}: {lines:?}");
        assert_eq!(ids(&symbols), ["module_unreadable"], "{name}");
    }
    let mut left = [0; 6];
    std::io::Read::read_exact(&mut writer, &mut left).unwrap();
    assert_eq!(&left, b"unread");
}

#[test]
fn names_are_demangled() {
    let program = Program::new(&["-g"]);
    std::fs::write(program.file("app.cpp"), "namespace n { __attribute__((noinline)) int f(int x) { asm(\"\"); return x; } }\nint main() { return n::f(0); }\n").unwrap();
    program.run("c++", &["-O1", "app.cpp", "-o", "app"]);
    let address = program.address("_ZN1n1fEi");
    let lines = without_roots().resolve(&program.path(), &[], address);
    assert_eq!(lines[0].function, "n::f+0x0");
    program.run("c++", &["-O1", "-g", "app.cpp", "-o", "app"]);
    let address = program.address("_ZN1n1fEi");
    let lines = without_roots().resolve(&program.path(), &[], address);
    assert_eq!(lines[0].function, "n::f");
}

const REGION: &str = r#"
double field[1000];
__attribute__((noinline)) void scale(double by) {
#pragma omp parallel for
    for (int i = 0; i < 1000; i++)
        field[i] *= by;
}
int main(void) {
    scale(2.0);
    return 0;
}
"#;

#[test]
fn regions_of_openmp_are_in_the_function_that_has_them() {
    for compiler in ["gcc", "clang"] {
        let program = Program::of(REGION, compiler, &["-g", "-fopenmp"]);
        let bytes = std::fs::read(program.file("app")).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let mut regions = object.symbols().filter(|symbol| {
            let name = symbol.name().unwrap_or_default();
            name.contains("_omp_fn") || name.contains("omp_outlined")
        });
        let begin = regions.next().expect("a region").address();
        let lines = Symbols::new().resolve(&program.path(), &program.build_id(), begin + 1);
        let functions: Vec<&str> = lines.iter().map(|line| line.function.as_str()).collect();
        assert_eq!(functions, ["scale"], "{compiler}");
        assert!((4..=6).contains(&lines[0].line), "{compiler}: {lines:?}");
    }
}

/// Instructions of no line are those of the line before, or after it, in their function.
#[test]
fn an_instruction_without_a_line_has_the_nearest_one_of_its_function() {
    const WITHOUT: &str = r#"
volatile int sink;
__attribute__((noinline)) void first(int x) {
    sink = x;
    __asm__ volatile(".loc 0 0\nat_first: nop\nnop");
    sink++;
}
__attribute__((noinline, naked)) void second(void) {
    __asm__ volatile(".loc 0 0\nat_second: nop\nnop\n.loc 0 70\nret");
}
int main(void) {
    first(7);
    second();
    return 0;
}
"#;
    let program = Program::of(WITHOUT, "clang", &["-gdwarf-5", "-Wl,--build-id"]);
    let mut symbols = without_roots();
    let mut at = |name: &str| {
        let address = program.address(name) + 1;
        symbols.resolve(&program.path(), &program.build_id(), address)[0].text()
    };
    assert_eq!(at("at_first"), "first app.c:4");
    assert_eq!(at("at_second"), "second app.c:70");
}

const MAIN_PROGRAM: &str = "
program heat
  integer :: i
  real(8) :: field(1000)
  field = 1
!$omp parallel do
  do i = 1, 1000
    field(i) = field(i) * 2
  end do
!$omp end parallel do
  print *, sum(field)
end program
";

/// The name of Fortran's main program is that of the source, in its regions, too.
#[test]
fn main_programs_and_their_regions_have_one_name() {
    let program = Program {
        directory: tempfile::tempdir().unwrap(),
    };
    std::fs::write(program.file("app.f90"), MAIN_PROGRAM).unwrap();
    let options = ["-O2", "-g", "-fopenmp", "app.f90", "-o", "app"];
    program.run("gfortran", &options);
    for name in ["MAIN__", "MAIN__._omp_fn.0"] {
        let address = program.address(name) + 1;
        let lines = Symbols::new().resolve(&program.path(), &program.build_id(), address);
        let outermost = lines.last().expect("a line");
        assert_eq!(outermost.function, "heat", "{name}");
    }
}
