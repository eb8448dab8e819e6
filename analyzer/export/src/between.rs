//! Which functions the time between two calls belongs to.
//!
//! It belongs to the deepest function that is on the stack at both calls and was not left in
//! between. The same function at the same stack position may be another activation: a loop around
//! `exchange` looks like a loop inside of it. So a function counts as not left only if its line
//! went forward, or if it is the outermost. Else the time belongs to its caller, and the two calls
//! name it.

use laggard_stacks::Frame;

/// The stack of what was computed between two calls, from their frames, outermost first, and their
/// names.
pub fn stack(before: (&[Frame], &str), after: (&[Frame], &str)) -> Vec<Frame> {
    let (frames, is_known) = shared(before.0, after.0);
    let mut frames = before.0[..frames].to_vec();
    if let Some(last) = frames.last_mut() {
        // That of a call; the computation is at other lines.
        last.line = 0;
    }
    if !is_known {
        let (before, after) = (before.1, after.1);
        frames.push(Frame::named(&match before == after {
            true => format!("between calls of {before}"),
            false => format!("between {before} and {after}"),
        }));
    }
    frames
}

/// Number of frames that were on the stack all the time, and whether the last of them is known to
/// be the deepest one.
fn shared(before: &[Frame], after: &[Frame]) -> (usize, bool) {
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let function = |frames: &[Frame]| {
        let frame = frames.get(same)?;
        Some((frame.function.clone(), frame.file.clone(), frame.line))
    };
    let lines = match (function(before), function(after)) {
        (Some(a), Some(b)) if (&a.0, &a.1) == (&b.0, &b.1) => Some((a.2, b.2)),
        _ => None,
    };
    let deepest = match lines {
        Some(_) => same,
        None if same == 0 => return (0, false),
        None => same - 1,
    };
    let went_on = lines.is_some_and(|(before, after)| 0 < before && before < after);
    match deepest == 0 || went_on {
        true => (deepest + 1, true),
        false => (deepest, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(before: &str, after: &str) -> String {
        let frames = |text: &str| -> Vec<Frame> {
            let frames = text.split(' ').filter(|frame| !frame.is_empty());
            let frame = |text: &str| {
                let (function, line) = text.split_once(':').unwrap_or((text, "0"));
                Frame {
                    function: function.to_owned(),
                    file: "a.c".to_owned(),
                    line: line.parse().unwrap(),
                }
            };
            frames.map(frame).collect()
        };
        let (a, b) = (frames(before), frames(after));
        let found = stack((&a, before), (&b, after));
        let texts = found.iter().map(|frame| match frame.line {
            0 => frame.function.clone(),
            line => format!("{}:{line}", frame.function),
        });
        texts.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_function_that_went_on_was_not_left() {
        assert_eq!(between("main:9 f:20 g:3", "main:9 f:25"), "main:9; f");
        assert_eq!(between("main:9 f:3", "main:9 f:5"), "main:9; f");
        // The outermost one, whatever its lines.
        for (before, after) in [("main:9", "main:7"), ("main:9", "main:9")] {
            assert_eq!(between(before, after), "main");
        }
        assert_eq!(between("main:20 f:3", "main:30 g:5"), "main");
    }

    #[test]
    fn a_function_that_may_have_been_left_has_nothing() {
        // A stencil: the steps of a loop in main, each with an exchange at the same line.
        assert_eq!(
            between("main:9 exchange:13", "main:9 exchange:8"),
            "main; between main:9 exchange:13 and main:9 exchange:8"
        );
        assert_eq!(
            between("main:9 step:3", "main:9 step:3"),
            "main; between calls of main:9 step:3"
        );
        assert_eq!(
            between("main:9 run:2 step:7 f:3", "main:9 run:2 step:5"),
            "main:9; run; between main:9 run:2 step:7 f:3 and main:9 run:2 step:5"
        );
        // Functions without lines.
        assert_eq!(between("main:9 f+0x1", "main:9 f+0x2"), "main");
    }

    #[test]
    fn calls_without_a_common_function_name_what_is_between_them() {
        assert_eq!(between("f:1", "g:2"), "between f:1 and g:2");
        assert_eq!(between("", ""), "between calls of ");
    }
}
