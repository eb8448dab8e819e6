//! Collectives: which member waits for which, and the losses.

use laggard_trace::calls::{self, Shape, number};
use laggard_trace::{Communicator, Endpoint, PEER_ANY, WORLD, flags};

use super::{BYTES_PER_NS, World};
use crate::ledger::{Member, Pattern};
use crate::location::NOBODY;
use crate::op::Among;
use crate::site::SiteId;

/// A collective that not all members have entered.
#[derive(Debug, Default)]
pub struct Meeting {
    /// Members that have entered, and when.
    entered: Vec<Member>,
    /// The root, once it has entered.
    root: Option<Member>,
    /// Members that wait for the root's data.
    waiting: Vec<u32>,
}

impl World<'_> {
    /// A rank enters a collective.
    pub(super) fn meet(&mut self, rank: u32, site: SiteId, among: Among, root: u32, bytes: u64) {
        let size = self.grid.size(among);
        let operation = self.sites[site as usize].operation;
        let call = self.begin(rank, site, self.grid.group(among, rank));
        call.flags |= flags::COLLECTIVE;
        let volume = volume(operation, rank == root, bytes, u64::from(size));
        let has_root = shape(operation).is_rooted();
        let peer = if has_root { root as i32 } else { PEER_ANY };
        let (tag, bytes) = (0, volume.0);
        call.send = Endpoint { peer, tag, bytes };
        call.receive.bytes = volume.1;
        self.enter(rank, among, root, volume.0.max(volume.1));
    }

    /// A rank makes the communicator of its row or column.
    pub(super) fn split(&mut self, rank: u32, site: SiteId, among: Among) {
        let object = self.grid.group(among, rank);
        let members = self.grid.members(among, rank);
        let local_rank = members.clone().position(|member| member == rank);
        let communicator = Communicator {
            id: object,
            parent: WORLD,
            size: self.grid.size(among),
            local_rank: local_rank.unwrap_or(0) as u32,
            // The first member defines it for all.
            members: match local_rank {
                Some(0) => members.collect(),
                _ => Vec::new(),
            },
            ..Communicator::default()
        };
        if let Some(location) = &mut self.ranks[rank as usize].location {
            location.communicator(communicator);
        }
        let call = self.begin(rank, site, WORLD);
        call.flags |= flags::COLLECTIVE;
        call.object = object;
        let peer = PEER_ANY;
        call.send = Endpoint { peer, ..NOBODY };
        self.enter(rank, Among::World, 0, 0);
    }

    /// Counts a rank in, and releases the members that now have everything they wait for.
    fn enter(&mut self, rank: u32, among: Among, root: u32, bytes: u64) {
        let size = self.grid.size(among) as usize;
        let own = &mut self.ranks[rank as usize];
        let Some(call) = &mut own.call else { return };
        let site = call.site;
        call.needs = 1;
        let n = &mut own.collectives[among as usize];
        let key = (self.grid.group(among, rank), *n);
        *n += 1;
        let member = Member {
            rank,
            enter: call.enter,
            leave: 0,
        };
        let meeting = self.meetings.entry(key).or_default();
        if meeting.entered.is_empty() {
            meeting.entered.reserve_exact(size);
        }
        meeting.entered.push(member);
        let is_whole = meeting.entered.len() == size;
        let way = self.settings.latency_ns + bytes / BYTES_PER_NS;
        match shape(self.sites[site as usize].operation) {
            Shape::OneToAll if rank == root => {
                meeting.root = Some(member);
                let waiting = std::mem::take(&mut meeting.waiting);
                self.release(member, member.enter);
                for rank in waiting {
                    self.receive_from_root(rank, site, &member, way);
                }
            }
            Shape::OneToAll => match meeting.root {
                Some(root) => self.receive_from_root(rank, site, &root, way),
                None => meeting.waiting.push(rank),
            },
            Shape::AllToOne if rank != root => {
                self.release(member, member.enter);
            }
            _ => {}
        }
        if is_whole && let Some(meeting) = self.meetings.remove(&key) {
            self.conclude_meeting(site, root, meeting.entered, way);
        }
    }

    /// All members have entered.
    fn conclude_meeting(&mut self, site: SiteId, root: u32, mut members: Vec<Member>, way: u64) {
        let last = members.iter().map(|member| member.enter).max();
        let ready = last.unwrap_or(0) + way;
        let shape = shape(self.sites[site as usize].operation);
        match shape {
            Shape::OneToAll => return,
            Shape::AllToOne => {
                let (at_root, others) = members.iter().partition(|member| member.rank == root);
                let (at_root, others): (Vec<Member>, Vec<Member>) = (at_root, others);
                for member in at_root {
                    let member = self.release(member, ready);
                    if let Some(ledger) = &mut self.ledger {
                        ledger.all_to_one(site, &member, &others);
                    }
                }
                return;
            }
            _ => {}
        }
        for member in &mut members {
            *member = self.release(*member, ready);
        }
        let (wait, completion) = match shape {
            Shape::Barrier => (
                Some(Pattern::WaitAtBarrier),
                Some(Pattern::BarrierCompletion),
            ),
            Shape::AllToAll => (Some(Pattern::WaitAtNxn), Some(Pattern::NxnCompletion)),
            Shape::Finalize => (Some(Pattern::WaitAtFinalize), None),
            Shape::Init => (None, Some(Pattern::InitCompletion)),
            _ => (Some(Pattern::WaitAtCommManagement), None),
        };
        if let Some(ledger) = &mut self.ledger {
            ledger.all_to_all(site, &members, wait, completion);
        }
    }

    /// The root's data reaches a member.
    fn receive_from_root(&mut self, rank: u32, site: SiteId, root: &Member, way: u64) {
        let enter = self.ranks[rank as usize].call.map_or(0, |call| call.enter);
        let member = Member {
            rank,
            enter,
            leave: 0,
        };
        let member = self.release(member, root.enter + way);
        if let Some(ledger) = &mut self.ledger {
            ledger.one_to_all(site, &member, root);
        }
    }

    /// A member has everything it needs at `ready`.
    fn release(&mut self, member: Member, ready: u64) -> Member {
        if let Some(call) = &mut self.ranks[member.rank as usize].call {
            call.needs = 0;
            call.ready = call.ready.max(ready);
        }
        let (enter, leave) = self.leave(member.rank);
        Member {
            enter,
            leave,
            ..member
        }
    }
}

fn shape(operation: u16) -> Shape {
    calls::call(operation).map_or(Shape::Single, |call| call.shape)
}

/// Bytes that a member sends and receives, if each gives each other member `bytes`.
fn volume(operation: u16, is_root: bool, bytes: u64, size: u64) -> (u64, u64) {
    match operation {
        number::MPI_Bcast if is_root => (bytes, 0),
        number::MPI_Bcast => (0, bytes),
        number::MPI_Reduce if is_root => (bytes, bytes),
        number::MPI_Reduce => (bytes, 0),
        number::MPI_Gather if is_root => (bytes, bytes * size),
        number::MPI_Gather => (bytes, 0),
        number::MPI_Alltoall => (bytes * size, bytes * size),
        _ => (bytes, bytes),
    }
}
