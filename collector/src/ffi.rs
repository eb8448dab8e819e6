//! `mpi.h` as bindgen sees it, and the shim: types and declarations only. At link time these
//! functions are *the collector's* and must not be called. The real ones are in
//! [`crate::resolve`].

#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    clippy::all
)]

include!(concat!(env!("OUT_DIR"), "/mpi.rs"));
