//! Generates Rust bindings of `mpi.h`, and compiles the C shim for the constants that only C
//! can name.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=shim/shim.c");
    println!("cargo:rerun-if-changed=shim/shim.h");
    println!("cargo:rerun-if-env-changed=MPICC");
    require_frame_pointers();
    export_dlsym();

    let compiler = env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let includes = include_directories(&compiler);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    let bindings = bindgen::Builder::default()
        .header("shim/shim.h")
        .clang_args(includes.iter().map(|path| format!("-I{path}")))
        .allowlist_function("MPI_.*|MPIX_.*_init|laggard_.*")
        .allowlist_type("MPI_.*|laggard_.*")
        .allowlist_var(
            "MPI_(PROC_NULL|ANY_SOURCE|ANY_TAG|ROOT|UNDEFINED|SUCCESS|MAX_.*)|O?MPI(CH)?_.*VERSION",
        )
        .layout_tests(false)
        .generate_comments(false)
        .override_abi(bindgen::Abi::CUnwind, "MPIX?_.*")
        .rust_target(
            bindgen::RustTarget::stable(85, 0)
                .map_err(drop)
                .expect("a known version"),
        )
        .rust_edition(bindgen::RustEdition::Edition2024)
        .generate()
        .unwrap_or_else(|error| panic!("mpi.h of `{compiler}` could not be read: {error}"));
    let mut text = bindings.to_string();
    declare_conversions(&mut text);
    choose_implementation(&text);
    std::fs::write(out.join("mpi.rs"), text).expect("OUT_DIR is writable");

    cc::Build::new()
        .file("shim/shim.c")
        .includes(&includes)
        .flag("-fvisibility=hidden")
        .warnings(true)
        .compile("laggard_shim");
}

/// The wrappers find their caller through their own frame pointer.
fn require_frame_pointers() {
    println!("cargo:rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let given = flags.split('\u{1f}').any(|flag| {
        let flag = flag.strip_prefix("-C").unwrap_or(flag);
        matches!(
            flag,
            "force-frame-pointers"
                | "force-frame-pointers=yes"
                | "force-frame-pointers=y"
                | "force-frame-pointers=on"
        )
    });
    assert!(
        given,
        "\n\nlaggard-collector needs frame pointers: RUSTFLAGS in the environment replaces \
         the flags of .cargo/config.toml; add `-C force-frame-pointers=yes` to it\n"
    );
}

/// Sets `cfg(dlsym_exported)` on targets where the collector exports its own `dlsym`
/// (`src/lookup.rs`). It needs the instruction set and a way to find the C library's `dlsym`.
///
/// The compiler exports a Rust function, but callers must reach hand-written instructions. The
/// linker gives the function's name to them.
fn export_dlsym() {
    println!("cargo:rustc-check-cfg=cfg(dlsym_exported)");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_known = ["x86_64", "aarch64"].contains(&target("ARCH").as_str());
    if is_known && target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-cfg=dlsym_exported");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--defsym=dlsym=laggard_dlsym");
    }
}

/// Include directories that the MPI compiler wrapper would use.
fn include_directories(compiler: &str) -> Vec<String> {
    let output = Command::new(compiler)
        .arg("-show")
        .output()
        .unwrap_or_else(|error| {
            panic!("\n\n`{compiler} -show` failed ({error}): install an MPI, or set MPICC\n")
        });
    assert!(
        output.status.success(),
        "\n\n`{compiler} -show` failed: {}\n",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .filter_map(|word| {
            word.strip_prefix("-I")
                .or_else(|| word.strip_prefix("-isystem"))
        })
        .map(str::to_owned)
        .collect()
}

/// Conversions between C and Fortran handles are macros in MPICH.
fn declare_conversions(bindings: &mut String) {
    let kinds = [
        "Comm",
        "Errhandler",
        "Group",
        "Info",
        "Message",
        "Op",
        "Request",
        "Type",
        "Win",
    ];
    for kind in kinds {
        if bindings.contains(&format!("fn MPI_{kind}_c2f(")) {
            continue;
        }
        let handle = if kind == "Type" { "Datatype" } else { kind };
        bindings.push_str(&format!(
            "unsafe extern \"C-unwind\" {{\n    pub fn MPI_{kind}_c2f(handle: MPI_{handle}) -> \
             ::std::os::raw::c_int;\n    pub fn MPI_{kind}_f2c(handle: ::std::os::raw::c_int) \
             -> MPI_{handle};\n}}\n"
        ));
    }
}

/// Sets `cfg(open_mpi)` or `cfg(mpich)`: the two store the count of a status differently. Also
/// sets `cfg(persistent_collectives)` for the persistent collectives of MPI 4, or
/// `cfg(persistent_extensions)` for the library's own variants.
fn choose_implementation(bindings: &str) {
    println!("cargo:rustc-check-cfg=cfg(open_mpi, mpich)");
    println!("cargo:rustc-check-cfg=cfg(persistent_collectives, persistent_extensions)");
    if bindings.contains("_ucount") {
        println!("cargo:rustc-cfg=open_mpi");
    } else if bindings.contains("count_hi_and_cancelled") {
        println!("cargo:rustc-cfg=mpich");
    }
    if bindings.contains("fn MPI_Barrier_init(") {
        println!("cargo:rustc-cfg=persistent_collectives");
    }
    if bindings.contains("fn MPIX_Barrier_init(") {
        println!("cargo:rustc-cfg=persistent_extensions");
    }
}
