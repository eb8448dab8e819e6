//! Roles of calls: in epochs on windows, in symmetric memory, among threads, and in collectives.

use laggard_trace::PEER_ROOT;
use laggard_trace::calls::{Call, GenericType, Shape, call, number};

/// Role of a call in epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    None,
    /// MPI_Win_post.
    Post,
    /// MPI_Win_start.
    Start,
    /// MPI_Win_complete.
    Complete,
    /// MPI_Win_wait, or a successful MPI_Win_test.
    Wait,
    /// Moves data.
    Transfer,
    /// Locks, unlocks or flushes.
    Passive,
}

impl Role {
    /// The role of a call.
    pub fn of(operation: u16) -> Role {
        match operation {
            number::MPI_Win_post => Role::Post,
            number::MPI_Win_start => Role::Start,
            number::MPI_Win_complete => Role::Complete,
            number::MPI_Win_wait | number::MPI_Win_test => Role::Wait,
            number::MPI_Win_lock
            | number::MPI_Win_lock_all
            | number::MPI_Win_unlock
            | number::MPI_Win_unlock_all
            | number::MPI_Win_flush
            | number::MPI_Win_flush_all
            | number::MPI_Win_flush_local
            | number::MPI_Win_flush_local_all => Role::Passive,
            // OpenSHMEM has neither windows nor epochs.
            _ => match call(operation)
                .filter(|call| !call.is_shmem())
                .map(|call| call.generic)
            {
                Some(
                    GenericType::OneSidedPut
                    | GenericType::OneSidedGet
                    | GenericType::OneSidedAtomic,
                ) => Role::Transfer,
                _ => Role::None,
            },
        }
    }
}

/// Role of a call among the threads of its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// None.
    Nothing,
    /// Begins a region on the threads of a team.
    Forks,
    /// Waits until a team needs the thread.
    Idles,
    /// Waits for all threads of a team.
    Meets,
    /// Waits for a lock, and acquires it.
    Locks,
    /// Releases a lock.
    Unlocks,
    /// Waits until another thread lets it go on.
    Awaits,
    /// Lets another thread go on.
    Signals,
}

impl Among {
    /// The role of a call.
    pub fn of(operation: u16) -> Among {
        match operation {
            number::omp_parallel => Among::Forks,
            number::omp_idle => Among::Idles,
            number::omp_parallel_end
            | number::omp_barrier
            | number::omp_loop_end
            | number::omp_sections_end
            | number::pthread_barrier_wait => Among::Meets,
            number::omp_critical
            | number::omp_set_lock
            | number::omp_set_nest_lock
            | number::omp_ordered
            | number::pthread_mutex_lock
            | number::mtx_lock
            | number::pthread_rwlock_rdlock
            | number::pthread_rwlock_wrlock
            | number::pthread_spin_lock => Among::Locks,
            number::omp_critical_end
            | number::omp_unset_lock
            | number::omp_unset_nest_lock
            | number::omp_ordered_end
            | number::pthread_mutex_unlock
            | number::mtx_unlock
            | number::pthread_rwlock_unlock
            | number::pthread_spin_unlock => Among::Unlocks,
            number::pthread_cond_wait
            | number::cnd_wait
            | number::sem_wait
            | number::futex_wait
            | number::pthread_join
            | number::thrd_join
            | number::omp_taskwait
            | number::omp_taskgroup_end => Among::Awaits,
            number::pthread_cond_signal
            | number::cnd_signal
            | number::sem_post
            | number::futex_wake
            | number::pthread_exit
            | number::omp_task_end => Among::Signals,
            _ => Among::Nothing,
        }
    }
}

/// Role of a call in symmetric memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// None.
    Nothing,
    /// Sets a variable to a known value.
    Sets,
    /// Changes a variable to an unknown value.
    Changes,
    /// Reads a variable of another PE.
    Gets,
    /// Waits for a value.
    Waits,
    /// Looks once whether a variable has a value.
    Looks,
    /// Waits for a lock, and acquires it.
    Locks,
    /// Acquires a lock if it is free.
    TriesLock,
    /// Releases a lock.
    Unlocks,
}

impl Memory {
    /// The role of a call.
    pub fn of(call: &Call) -> Memory {
        if call.is_user() && call.generic == GenericType::WaitOnValue {
            return Memory::Waits;
        }
        if !call.has_address() {
            return Memory::Nothing;
        }
        match call.generic {
            GenericType::OneSidedPut => Memory::Sets,
            GenericType::OneSidedGet => Memory::Gets,
            GenericType::OneSidedAtomic if call.name.ends_with("_set") => Memory::Sets,
            GenericType::OneSidedAtomic if call.name.ends_with("swap") => Memory::Sets,
            GenericType::OneSidedAtomic => Memory::Changes,
            GenericType::WaitOnValue if call.name.ends_with("_test") => Memory::Looks,
            GenericType::WaitOnValue => Memory::Waits,
            GenericType::Lock if call.name.ends_with("test_lock") => Memory::TriesLock,
            GenericType::Lock => Memory::Locks,
            GenericType::Unlock => Memory::Unlocks,
            _ => Memory::Nothing,
        }
    }
}
/// A member's part in a collective. A member that neither waits nor is awaited moves no data and is
/// only counted, for example beside the root in its group of an intercommunicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// It needs something from others.
    pub waits: bool,
    /// Others need something from it.
    pub is_awaited: bool,
    /// It moves data in a collective with a root: others may hold it up of whom it needs nothing.
    pub is_held: bool,
}

impl Part {
    /// The part of a rank. `has_bytes`: it moves data itself. `root` is as in the trace.
    pub fn new(shape: Shape, root: i32, has_bytes: bool, rank: u32) -> Part {
        let is_root = root == PEER_ROOT || root == rank as i32;
        let (waits, is_awaited) = match shape {
            Shape::OneToAll => (!is_root && has_bytes, is_root),
            Shape::AllToOne => (is_root && has_bytes, !is_root && has_bytes),
            _ => (true, true),
        };
        Part {
            waits,
            is_awaited,
            is_held: shape.is_rooted() && has_bytes,
        }
    }
}
