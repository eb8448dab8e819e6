//! The pattern catalogue: conditions, severities, advice
