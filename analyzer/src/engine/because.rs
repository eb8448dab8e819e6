//! What a late party did, in a phrase.

use laggard_patterns::PatternId;
use laggard_report::units::duration;
use laggard_trace::calls;

use super::finding::{Cause, CauseKey};
use super::places::Places;

/// What the late party did while the others waited, in one phrase.
pub fn because(pattern: PatternId, key: &CauseKey, cause: &Cause, places: &mut Places) -> String {
    let instances = cause.instances.max(1);
    let mean = |ns: u64| duration((ns / instances) as f64 / 1e9);
    let often = if instances == 1 { "" } else { " each time" };
    let before = match pattern {
        PatternId::LateReceiver => "before it posted the receive",
        PatternId::LateSender
        | PatternId::LateSenderWrongOrderSameSource
        | PatternId::LateSenderWrongOrderOtherSource => "before the send",
        _ => "before it came",
    };
    let known = cause
        .computation
        .saturating_add(cause.waiting)
        .saturating_add(cause.io);
    if pattern == PatternId::LateSenderWrongOrderSameSource && cause.waiting > cause.severity / 2 {
        return format!(
            "messages were received in another order than rank {} sent them",
            key.rank
        );
    }
    if known < cause.severity / 2 {
        return format!("came {} later{often}", mean(cause.severity));
    }
    let most = cause.computation.max(cause.waiting).max(cause.io);
    if most == cause.computation {
        return format!(
            "computed {} longer{often} {before}",
            mean(cause.computation)
        );
    }
    if most == cause.io {
        return format!(
            "spent {} in file operations{often} {before}",
            mean(cause.io)
        );
    }
    let mut others = cause.others.clone();
    others.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (a.0, a.1).cmp(&(b.0, b.1))));
    match others.first() {
        Some(&(operation, path, ns)) => {
            let place = places.short(path);
            let name = calls::name(operation);
            let (all, most) = (mean(cause.waiting), mean(ns));
            // Where it waited nearly all the time in one operation, one number says it.
            if ns >= cause.waiting / 10 * 9 {
                format!("itself waited {all}{often} in {name} ({place}) {before}")
            } else if ns >= cause.waiting / 4 {
                format!("itself waited {all}{often}, {most} of it in {name} ({place}), {before}")
            } else {
                // So many calls that only the last are told apart.
                format!("itself waited {all}{often}, at last in {name} ({place}), {before}")
            }
        }
        None => format!(
            "was itself inside communication for {}{often} {before}",
            mean(cause.waiting)
        ),
    }
}
