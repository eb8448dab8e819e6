//! The trace format: records, definitions, writer and reader
