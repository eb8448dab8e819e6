//! Measurements of the collector and the analyzer
