//! One time for all hosts: clocks that are corrected by causes and effects.

pub mod moments;
pub mod repair;
