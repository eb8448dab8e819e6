//! Libraries that come and go at the same addresses. A process of its own, so that nothing else
//! is loaded in between.

mod common;
use common::{Hook, Library, ORACLE, Oracle, TRACER, captured, compile, hook};
use laggard_callpath::{Frame, module, module_count, note_unload};

/// Alternately loads and unloads two builds, which get the same address, and makes `times`
/// calls. Returns the build ids of the last path captured in each turn.
fn alternate(name: &str, times: usize, unloaded: fn()) -> Vec<u8> {
    // The same program built twice; the build ids tell them apart.
    let id = |byte: &str| format!("-Wl,--build-id=0x{}", byte.repeat(16));
    let files = ["aa", "bb"].map(|byte| {
        compile(
            "shapes",
            &format!("{name}-{byte}"),
            &["-O2", &id(byte), "-fno-optimize-sibling-calls"],
        )
    });
    let mut seen = Vec::new();
    for file in [&files[0], &files[1], &files[0], &files[1]] {
        let library = Library::open(file);
        // SAFETY: the function's type in the source.
        let outer: extern "C" fn(Hook) = unsafe { library.get(c"outer") };
        for _ in 0..times {
            outer(hook);
        }
        let path = captured()[times - 1];
        let Frame::Native { module: id, offset } =
            TRACER.with_borrow(|tracer| tracer.frames(path)[0])
        else {
            panic!("not native");
        };
        let module = module(id).unwrap();
        assert_eq!(&module.path, file);
        assert!(id.0 < module_count());
        seen.push((module.load_bias, module.build_id[0], offset));
        library.close();
        unloaded();
    }
    for file in files {
        std::fs::remove_file(file).unwrap();
    }
    assert!(
        seen.iter()
            .all(|&(bias, _, offset)| (bias, offset) == (seen[0].0, seen[0].2))
    );
    seen.into_iter().map(|(_, build, _)| build).collect()
}

#[test]
fn another_library_at_the_same_address() {
    let builds = alternate("noted", 2, note_unload);
    assert_eq!(builds, [0xaa, 0xbb, 0xaa, 0xbb]);
    // Without a notice, the tracer finds out after a while.
    ORACLE.set(Oracle::Ignore);
    let builds = alternate("unnoted", 5000, || {});
    assert_eq!(builds, [0xaa, 0xbb, 0xaa, 0xbb]);
}
