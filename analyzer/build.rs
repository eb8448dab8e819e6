//! What the command needs of the linker.

fn main() {
    // OpenSHMEM, loaded while it runs, looks for the end of the executable's data by this symbol:
    // without it it takes the heap, which differs from process to process, for symmetric memory.
    // Linkers define it only where something asks for it.
    println!("cargo:rustc-link-arg-bins=-Wl,--undefined=_end,--export-dynamic-symbol=_end");
    println!("cargo:rerun-if-changed=build.rs");
}
