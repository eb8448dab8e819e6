//! Reads everything in a location's file.

use std::path::Path;

use laggard_trace::{Decoder, Frame, Location};

/// Opens a file from its bytes and reads all of it.
pub fn location(bytes: &[u8]) {
    let Ok(location) = Location::from_bytes(Path::new("fuzzed"), bytes) else {
        return;
    };
    look_at(&location, bytes.len());
}

/// Reads everything in a location of `size` bytes.
pub fn look_at(location: &Location, size: usize) {
    let definitions = &location.definitions;
    let signatures = definitions.signatures();
    let (mut calls, mut known) = (0u64, 0u64);
    for chunk in &location.chunks {
        let records = location.records(chunk);
        // A chunk outside of the file cannot have records.
        assert!(size_of_val(records) <= size);
        let _ = location.verify(chunk);
        let mut decoder = Decoder::new(records, chunk.base);
        while let Some(event) = decoder.next() {
            calls += 1;
            let signature = signatures.get(event.signature as usize);
            known += u64::from(signature.is_some());
            for completion in &event.completed {
                let _ = signatures.get(completion.outcome as usize);
            }
        }
        assert!(decoder.state().0 <= records.len());
        location.release(chunk);
    }
    assert!(known <= calls && calls <= size as u64);
    for signature in signatures {
        let _ = definitions.completion_list(signature.completes);
        for frame in definitions.call_path(signature.call_path) {
            let id = match *frame {
                Frame::Native { module, .. } => definitions.module(module).map_or(0, |m| m.path),
                Frame::Source { function, .. } => function,
            };
            let _ = definitions.string(id);
        }
    }
    for key in ["program", "argument", "host", "mpi_library"] {
        let _ = definitions.properties(key);
    }
    // Memory follows from the file's content, not from numbers in it.
    let kept = location.profile.len() + location.clock.len() + location.damage.len();
    assert!(kept <= size);
}
