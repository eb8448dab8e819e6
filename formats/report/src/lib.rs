//! The report: its structure, JSON Schema and text form
