//! The preloaded library that records what every call did
