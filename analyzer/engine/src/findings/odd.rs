//! Anomalies that the replay leaves: messages, locks and collectives without their other half, and
//! what was cut off.

use laggard_report::seconds;

use crate::basics::anomaly::{Anomalies, Level};
use crate::basics::ends::NONE;
use crate::collectives::group::Owned;
use crate::findings::hanging;
use crate::messages::charges::ORDER_WINDOW;
use crate::replay::rank::Rank;
use crate::stream::thread::Thread;

/// Notes messages of a rank that it received too late after those they had overtaken.
pub fn beyond_window(rank: &Rank, anomalies: &mut Anomalies) {
    let count = rank.messages.asker.calls.beyond_window();
    if count > 0 {
        let detail = format!(
            "messages were sent before one that a receive waited for, and received more than \
             {ORDER_WINDOW} receives after it: so late, the wait does not count as wrong order"
        );
        anomalies.add("order_not_searched", Level::Info, count, detail);
    }
}

/// Notes the messages of a rank without a partner.
pub fn unmatched(rank: &Rank, truncated: &[bool], anomalies: &mut Anomalies) {
    let cut = |peer: i32| {
        let is_cut = |rank: usize| truncated.get(rank).copied().unwrap_or(true);
        is_cut(rank.recorded.rank as usize) || is_cut(peer as usize)
    };
    let mut note =
        |id: &str, count: u64, peer: i32, tag: i32, thread: usize, signature: u32, sends: bool| {
            let Some(found) = rank.recorded.threads.get(thread) else {
                return;
            };
            let Some(row) = found.rows.get(signature as usize) else {
                return;
            };
            let definition = &found.stream.location().definitions.signatures()[signature as usize];
            let half = if sends {
                definition.send
            } else {
                definition.receive
            };
            let (from, to) = if sends {
                (rank.recorded.rank as i32, peer)
            } else {
                (peer, rank.recorded.rank as i32)
            };
            let from = if from < 0 {
                "any".to_owned()
            } else {
                from.to_string()
            };
            let tag = if tag < 0 {
                "any".to_owned()
            } else {
                tag.to_string()
            };
            let (level, note) = match peer >= 0 && cut(peer) {
                true => (Level::Info, " (a trace of the two is cut off)"),
                false => (Level::Warning, ""),
            };
            let detail = format!("rank {from} -> {to}, tag {tag}, {} bytes{note}", half.bytes);
            anomalies
                .add(id, level, count, detail)
                .place(row.operation, found.paths[signature as usize]);
        };
    for (channels, id, sends) in [
        (&rank.messages.sends, "unmatched_send", true),
        (&rank.messages.receives, "unmatched_receive", false),
    ] {
        // Epochs on windows also have channels, with tags below all message tags.
        let messages = channels.list.iter().filter(|channel| channel.key.2 >= 0);
        for channel in messages.filter(|channel| channel.agent != NONE) {
            let partners = channel.final_count.unwrap_or(0);
            let count = channel.next.saturating_sub(partners);
            if count == 0 {
                continue;
            }
            let (_, peer, tag) = channel.key;
            if let Some(end) = channel.get(partners) {
                note(
                    id,
                    count,
                    peer,
                    tag,
                    end.thread as usize,
                    end.signature,
                    sends,
                );
            }
        }
    }
    for open in &rank.messages.abandoned {
        let (_, peer, tag) = open.0;
        note(
            "unmatched_receive",
            1,
            peer,
            tag,
            open.1.thread as usize,
            open.1.signature,
            false,
        );
    }
}

/// Notes locks that were never released, or released by a PE that did not hold them.
pub fn odd_locks(rank: &Rank, truncated: &[bool], anomalies: &mut Anomalies) {
    let limits = |thread: &Thread| thread.stream.location().end.map_or(0, |end| end.limits);
    if rank
        .recorded
        .threads
        .iter()
        .any(|thread| limits(thread) != 0)
    {
        // Calls during pauses of the recording are unknown.
        return;
    }
    let [kept, foreign] = rank.memory.locks.odd();
    let is_cut = truncated
        .get(rank.recorded.rank as usize)
        .copied()
        .unwrap_or(true);
    let number = rank.recorded.rank;
    let kept_text = match is_cut {
        true => format!("rank {number} held it when its trace ended, which is cut off"),
        false => format!("rank {number} took it and never gave it back"),
    };
    let foreign_text = format!("rank {number} gave back what it had not taken");
    for (id, text, all) in [
        ("lock_not_released", kept_text, kept),
        ("foreign_unlock", foreign_text, foreign),
    ] {
        for ((thread, signature), count) in all {
            let found = &rank.recorded.threads[thread as usize];
            let operation = found.rows[signature as usize].operation;
            let path = found.paths[signature as usize];
            anomalies
                .add(id, Level::Warning, count, text.clone())
                .place(operation, path);
        }
    }
}

/// Notes the last call before the cut of a rank's traces, if the call at the cut is unknown. Then
/// the rank computed, or the recorder notes calls only when they return. `end` is when the last
/// call of all ranks returned, ns.
pub fn cut_off(rank: &Rank, end: i64, anomalies: &mut Anomalies) {
    let threads = rank.recorded.threads.iter();
    let is_cut = |thread: &&Thread| {
        thread.stream.location().end.is_none() && hanging::open_call(thread).is_none()
    };
    for thread in threads.filter(is_cut) {
        let columns = &thread.columns;
        let row = |signature: u32| thread.rows.get(signature as usize);
        let is_call = |signature: u32| row(signature).is_some_and(|row| !row.is_mark());
        let last = columns.signature.iter().rposition(|&s| is_call(s));
        let Some(at) = last else {
            continue;
        };
        let (signature, leave) = (columns.signature[at] as usize, columns.leave[at]);
        let how = match thread.stream.location().is_outside {
            true => "in no call, so while it computed,",
            false => "while it computed or in a call that is not known",
        };
        let detail = format!(
            "rank {} was cut off {how} after its last recorded call ({:.3} s before the last one \
             of all ranks)",
            rank.recorded.rank,
            seconds(end.saturating_sub(leave).max(0)),
        );
        let operation = thread.rows[signature].operation;
        anomalies
            .add("cut_off_after", Level::Info, 1, detail)
            .place(operation, thread.paths[signature]);
    }
}

/// Notes the collectives that some member never entered.
pub fn incomplete(owned: &Owned, any_truncated: bool, anomalies: &mut Anomalies) {
    let count = owned.incomplete().count() as u64;
    if count > 0 {
        let level = if any_truncated {
            Level::Info
        } else {
            Level::Warning
        };
        let detail = "collectives that not all members entered, as far as their traces tell";
        anomalies.add("incomplete_collective", level, count, detail.into());
    }
}
