//! What an operation should cost on a machine
