//! Members of collectives.

use std::collections::hash_map::Entry;

use anyhow::Result;

use super::{CallOf, Matching};
use crate::basics::ends::End;
use crate::collectives::group::GroupEntry;
use crate::events::{ByCall, Collective, Joined, Member};
use crate::replay::rank::Rank;

impl Matching<'_> {
    pub(crate) fn entered(
        &mut self,
        at: usize,
        rank: &Rank,
        at_entry: usize,
        to: &mut dyn Joined,
    ) -> Result<()> {
        let entry: &GroupEntry = &rank.collectives.entries[at_entry];
        let call = CallOf::new(
            rank,
            &End {
                time: entry.enter,
                event: entry.event,
                signature: entry.signature,
                thread: entry.thread,
            },
        );
        let (group, expected) = self.groups[entry.group as usize];
        let local = rank.collectives.local_ranks.get(&entry.group);
        let member = Member {
            group,
            instance: entry.n,
            call: call.signature.operation,
            call_path: self.call_path(at, entry.thread, call.signature),
            location: self.first_location[at] + entry.thread,
            local_rank: local.copied().unwrap_or(rank.recorded.rank),
            waits: entry.part.waits,
            is_awaited: entry.part.is_awaited,
            number: entry.event,
            enter: entry.enter,
            done: None,
            bytes_sent: call.send().bytes,
            bytes_received: call.receive().bytes,
        };
        let key = (entry.group, entry.n);
        let (sum, _) = self.collectives.entry(key).or_insert_with(|| {
            let begun = Collective {
                group,
                instance: entry.n,
                call: member.call,
                members: 0,
                expected,
                first_enter: i64::MAX,
                first_rank: rank.recorded.rank,
                last_enter: i64::MIN,
                last_rank: rank.recorded.rank,
                first_leave: None,
                last_leave: None,
                bytes_sent: 0,
            };
            (begun, 0)
        });
        sum.members += 1;
        // Members may use different calls, such as MPI_Comm_idup.
        sum.call = sum.call.min(member.call);
        sum.bytes_sent = sum.bytes_sent.saturating_add(member.bytes_sent);
        if (member.enter, rank.recorded.rank) < (sum.first_enter, sum.first_rank) {
            (sum.first_enter, sum.first_rank) = (member.enter, rank.recorded.rank);
        }
        if member.enter > sum.last_enter
            || member.enter == sum.last_enter && rank.recorded.rank < sum.last_rank
        {
            (sum.last_enter, sum.last_rank) = (member.enter, rank.recorded.rank);
        }
        match call.by_itself() {
            Some(done) => self.member_done(entry.group, member, Some(done), to),
            None => {
                self.members
                    .insert((rank.recorded.rank, entry.group, entry.n), member);
                Ok(())
            }
        }
    }

    /// A member has completed a collective, or never will.
    pub(crate) fn member_done(
        &mut self,
        group: u32,
        member: Member,
        done: Option<ByCall>,
        to: &mut dyn Joined,
    ) -> Result<()> {
        to.member(&Member { done, ..member })?;
        let Entry::Occupied(mut found) = self.collectives.entry((group, member.instance)) else {
            return Ok(());
        };
        let (sum, ended) = found.get_mut();
        *ended += 1;
        if let Some(done) = done {
            let first = sum.first_leave.map_or(done.leave, |l| l.min(done.leave));
            let last = sum.last_leave.map_or(done.leave, |l| l.max(done.leave));
            (sum.first_leave, sum.last_leave) = (Some(first), Some(last));
        }
        if *ended == sum.expected {
            let (sum, _) = found.remove();
            to.collective(&sum)?;
        }
        Ok(())
    }
}
