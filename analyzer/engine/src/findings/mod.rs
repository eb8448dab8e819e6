//! Sums of findings, by place and cause, and their way to the head.
//!
//! *In.* Losses of calls. *Out.* Folded findings at the head; the table per rank.

pub mod by_operation;
pub mod call_tree;
pub mod fold;
pub mod functions;
pub mod hanging;
pub mod imbalance;
pub mod left;
pub mod listing;
pub mod matrix;
pub mod merge;
pub mod odd;
pub mod pairs;
pub mod per_rank;
pub mod places;
pub mod regions;
pub mod severe;
pub mod teams;
pub mod within;
