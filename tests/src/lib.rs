//! End-to-end tests on real MPI programs
