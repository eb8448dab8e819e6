//! What locations moved, as the report has it.

use laggard_report::{
    Collectives, FileAccess, MessagePair, MessagePairs, Messages, OneSided, Traffic,
};

use crate::findings::pairs::Pairs;
use crate::stream::traffic;

/// The counts of a location, or of several.
pub fn told(traffic: &traffic::Traffic) -> Traffic {
    Traffic {
        two_sided: Messages {
            sends: traffic.sends,
            empty_sends: traffic.empty_sends,
            sent_bytes: traffic.two_sided.sent,
            receives: traffic.receives,
            received_bytes: traffic.two_sided.received,
        },
        collective: Collectives {
            exchanges: traffic.exchanges,
            sources: traffic.sources,
            destinations: traffic.destinations,
            synchronizations: traffic.synchronizations,
            sent_bytes: traffic.collective.sent,
            received_bytes: traffic.collective.received,
        },
        one_sided: OneSided {
            transfers: traffic.transfers,
            sent_bytes: traffic.one_sided.sent,
            received_bytes: traffic.one_sided.received,
            pair_synchronizations: traffic.pairs,
            unneeded_pair_synchronizations: traffic.unneeded_pairs,
        },
        file: FileAccess {
            calls: traffic.file_calls,
            written_bytes: traffic.file.sent,
            read_bytes: traffic.file.received,
        },
    }
}

/// Who sends whom, if anybody does.
pub fn pairs(pairs: &Pairs) -> Option<MessagePairs> {
    let listed = pairs.listed.iter();
    let largest = listed.map(|&(from, to, (messages, bytes))| MessagePair {
        from,
        to,
        messages,
        bytes,
    });
    (pairs.count > 0).then(|| MessagePairs {
        pairs: pairs.count,
        messages: pairs.all.0,
        bytes: pairs.all.1,
        largest: largest.collect(),
    })
}
