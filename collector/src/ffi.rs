//! `mpi.h` as bindgen sees it, and the shim. Types and declarations only: the
//! functions declared here are *ours* at link time and must not be called; the real
//! ones are in [`crate::resolve`].

#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    clippy::all
)]

include!(concat!(env!("OUT_DIR"), "/mpi.rs"));
