//! What the program moved, in a line.

use crate::style::plural;
use crate::style::size;
use crate::traffic::Traffic;

impl Traffic {
    /// Bytes by kind, and synchronisation without data; `None` if there was neither. Unless
    /// `all_of_files` is known, files may have had more.
    pub(crate) fn in_words(&self, all_of_files: bool) -> Option<String> {
        let Traffic {
            two_sided,
            collective,
            one_sided,
            file,
        } = self;
        let mut parts = Vec::new();
        let mut add = |bytes: u64, how: String| {
            if bytes > 0 {
                parts.push(format!("{} {how}", size(bytes)));
            }
        };
        let with_data = two_sided.sends.saturating_sub(two_sided.empty_sends);
        add(
            two_sided.sent_bytes,
            format!("in {}", plural(with_data, "message")),
        );
        add(collective.sent_bytes, "given to collectives".to_owned());
        let transferred = one_sided
            .sent_bytes
            .saturating_add(one_sided.received_bytes);
        add(
            transferred,
            format!("in {}", plural(one_sided.transfers, "one-sided transfer")),
        );
        let or_more = if all_of_files { "" } else { "or more " };
        add(file.written_bytes, format!("{or_more}written to files"));
        add(file.read_bytes, format!("{or_more}read from files"));
        if two_sided.empty_sends > 0 {
            parts.push(plural(two_sided.empty_sends, "empty message"));
        }
        let unneeded = one_sided.unneeded_pair_synchronizations;
        if unneeded > 0 {
            parts.push(plural(unneeded, "epoch") + " without a transfer");
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Collectives, FileAccess, Messages, OneSided};

    #[test]
    fn only_what_there_was_is_told() {
        assert_eq!(Traffic::default().in_words(true), None);
        let traffic = Traffic {
            two_sided: Messages {
                sends: 5,
                empty_sends: 4,
                sent_bytes: 8,
                ..Messages::default()
            },
            collective: Collectives {
                sent_bytes: 2_500_000,
                ..Collectives::default()
            },
            one_sided: OneSided {
                transfers: 2,
                sent_bytes: 1000,
                received_bytes: 500,
                pair_synchronizations: 3,
                unneeded_pair_synchronizations: 1,
            },
            file: FileAccess {
                calls: 1,
                read_bytes: 1_000_000_000,
                ..FileAccess::default()
            },
        };
        let text = |all_of_files| {
            let text = traffic.in_words(all_of_files).unwrap();
            text.replace(crate::style::GLUE, " ")
        };
        assert_eq!(
            text(true),
            "8 B in 1 message, 2.50 MB given to collectives, 1.50 kB in 2 one-sided transfers, \
             1.00 GB read from files, 4 empty messages, 1 epoch without a transfer"
        );
        assert!(text(false).contains(" 1.00 GB or more read from files, "));
    }
}
