//! One time for all hosts: clocks corrected by causes and effects.

pub mod moments;
pub mod repair;
