//! What the command needs of the linker.

fn main() {
    // OpenSHMEM, loaded while it runs, looks for the end of the executable's data by this symbol:
    // without it it takes the heap, which differs from process to process, for symmetric memory.
    // Linkers define it only where something asks for it.
    // MPICH finds the second one here before UCX's (`comm/waiting.rs`).
    for symbol in ["_end", "ucp_worker_progress"] {
        println!(
            "cargo:rustc-link-arg-bins=-Wl,--undefined={symbol},--export-dynamic-symbol={symbol}"
        );
    }
    println!("cargo:rerun-if-changed=build.rs");
}
