//! Records and analyses every program of `programs/`, and compares the reports with their sources.

use std::collections::BTreeSet;

use laggard_tests::check::check_program;
use laggard_tests::directives::Directives;
use laggard_tests::product::programs;

macro_rules! programs {
    ($($name:ident: $source:literal;)*) => {
        const PROGRAMS: &[&str] = &[$($source),*];
        $(
            #[test]
            fn $name() {
                check_program($source);
            }
        )*
    };
}

programs! {
    completion: "completion.c";
    completion_near_miss: "completion_near_miss.c";
    collectives_polled: "collectives_polled.c";
    cplusplus: "cplusplus.cpp";
    early_reduce: "early_reduce.c";
    early_reduce_near_miss: "early_reduce_near_miss.c";
    early_reduce_zero_counts: "early_reduce_zero_counts.c";
    early_scan: "early_scan.c";
    early_scan_near_miss: "early_scan_near_miss.c";
    early_scan_two_late: "early_scan_two_late.c";
    empty_epochs: "empty_epochs.c";
    empty_messages: "empty_messages.c";
    empty_polled: "empty_polled.c";
    fortran_mpif: "fortran_mpif.f";
    fortran_mpif_free: "fortran_mpif_free.f90";
    fortran_posix_io: "fortran_posix_io.f90";
    fortran_polled: "fortran_polled.f90";
    fortran_use_mpi: "fortran_use_mpi.f90";
    fortran_use_mpi_f08: "fortran_use_mpi_f08.f90";
    fence_assertions: "fence_assertions.c";
    foreign_unlock: "foreign_unlock.c";
    late_broadcast: "late_broadcast.c";
    late_broadcast_near_miss: "late_broadcast_near_miss.c";
    late_post: "late_post.c";
    late_post_near_miss: "late_post_near_miss.c";
    late_receiver_isend_wait: "late_receiver_isend_wait.c";
    late_receiver_near_miss: "late_receiver_near_miss.c";
    late_receiver_polled: "late_receiver_polled.c";
    late_receiver_rendezvous: "late_receiver_rendezvous.c";
    late_receiver_ssend: "late_receiver_ssend.c";
    late_sender_bsend_rsend: "late_sender_bsend_rsend.c";
    late_sender_chain: "late_sender_chain.c";
    late_sender_file_io: "late_sender_file_io.c";
    late_sender_intercommunicator: "late_sender_intercommunicator.c";
    late_sender_irecv_near_miss: "late_sender_irecv_near_miss.c";
    late_sender_irecv_wait: "late_sender_irecv_wait.c";
    late_sender_mprobe: "late_sender_mprobe.c";
    late_sender_nested_communicator: "late_sender_nested_communicator.c";
    late_sender_one_line: "late_sender_one_line.c";
    late_sender_one_line_some: "late_sender_one_line_some.c";
    late_sender_polled: "late_sender_polled.c";
    late_sender_polled_idle: "late_sender_polled_idle.c";
    late_sender_polled_near_miss: "late_sender_polled_near_miss.c";
    late_sender_persistent: "late_sender_persistent.c";
    late_sender_probe: "late_sender_probe.c";
    late_sender_recv: "late_sender_recv.c";
    late_sender_recv_near_miss: "late_sender_recv_near_miss.c";
    late_sender_sendrecv_ring: "late_sender_sendrecv_ring.c";
    late_sender_subcommunicator: "late_sender_subcommunicator.c";
    late_sender_threads: "late_sender_threads.c";
    late_sender_truncated: "late_sender_truncated.c";
    late_sender_two_lengths: "late_sender_two_lengths.c";
    late_sender_two_paths: "late_sender_two_paths.c";
    late_sender_uniform: "late_sender_uniform.c";
    late_sender_waitall: "late_sender_waitall.c";
    late_sender_waitall_near_miss: "late_sender_waitall_near_miss.c";
    late_sender_waitany_waitsome: "late_sender_waitany_waitsome.c";
    late_sender_wildcard: "late_sender_wildcard.c";
    lock_all: "lock_all.c";
    lock_contention: "lock_contention.c";
    lock_contention_near_miss: "lock_contention_near_miss.c";
    lock_contention_unlock: "lock_contention_unlock.c";
    lock_contention_unlock_near_miss: "lock_contention_unlock_near_miss.c";
    mpi_and_shmem: "mpi_and_shmem.c";
    neighborhood_collectives: "neighborhood_collectives.c";
    neighborhood_near_miss: "neighborhood_near_miss.c";
    neighborhood_path: "neighborhood_path.c";
    nonblocking_barrier: "nonblocking_barrier.c";
    nonblocking_barrier_near_miss: "nonblocking_barrier_near_miss.c";
    nonblocking_collectives: "nonblocking_collectives.c";
    nonblocking_collectives_near_miss: "nonblocking_collectives_near_miss.c";
    passive_forms: "passive_forms.c";
    persistent_collectives: "persistent_collectives.c";
    polling: "polling.c";
    python_mpi4py: "python_mpi4py.py";
    off_processor_asleep: "off_processor_asleep.c";
    root_cause_chain: "root_cause_chain.c";
    root_cause_duplicate: "root_cause_duplicate.c";
    root_cause_file_request: "root_cause_file_request.c";
    root_cause_gather: "root_cause_gather.c";
    root_cause_fortran: "root_cause_fortran.f90";
    root_cause_innocent: "root_cause_innocent.c";
    root_cause_io: "root_cause_io.c";
    root_cause_member: "root_cause_member.c";
    root_cause_nonblocking: "root_cause_nonblocking.c";
    root_cause_polled: "root_cause_polled.c";
    root_cause_polled_in_turn: "root_cause_polled_in_turn.c";
    root_cause_posix_io: "root_cause_posix_io.c";
    root_cause_posix_io_near_miss: "root_cause_posix_io_near_miss.c";
    root_cause_post: "root_cause_post.c";
    root_cause_shmem_chain: "root_cause_shmem_chain.c";
    root_cause_shmem_lock: "root_cause_shmem_lock.c";
    root_cause_sparse_exchange: "root_cause_sparse_exchange.c";
    root_cause_testany: "root_cause_testany.c";
    root_cause_two: "root_cause_two.c";
    root_cause_window_lock: "root_cause_window_lock.c";
    rooted_intercommunicator: "rooted_intercommunicator.c";
    shmem_groups: "shmem_groups.c";
    shmem_collectives: "shmem_collectives.c";
    shmem_collectives_near_miss: "shmem_collectives_near_miss.c";
    unexplained_others: "unexplained_others.c";
    unexplained_wait: "unexplained_wait.c";
    unmatched_near_miss: "unmatched_near_miss.c";
    unmatched_receive: "unmatched_receive.c";
    unmatched_send: "unmatched_send.c";
    wait_at_barrier: "wait_at_barrier.c";
    wait_at_barrier_intercommunicator: "wait_at_barrier_intercommunicator.c";
    wait_at_barrier_near_miss: "wait_at_barrier_near_miss.c";
    wait_at_barrier_subcommunicators: "wait_at_barrier_subcommunicators.c";
    wait_at_collective_io: "wait_at_collective_io.c";
    wait_at_collective_io_near_miss: "wait_at_collective_io_near_miss.c";
    wait_at_comm_management: "wait_at_comm_management.c";
    wait_at_comm_management_near_miss: "wait_at_comm_management_near_miss.c";
    wait_at_fence: "wait_at_fence.c";
    wait_at_fence_near_miss: "wait_at_fence_near_miss.c";
    wait_at_finalize: "wait_at_finalize.c";
    wait_at_finalize_near_miss: "wait_at_finalize_near_miss.c";
    wait_at_nxn: "wait_at_nxn.c";
    wait_at_nxn_near_miss: "wait_at_nxn_near_miss.c";
    wait_at_shmem_barrier: "wait_at_shmem_barrier.c";
    wait_at_shmem_barrier_near_miss: "wait_at_shmem_barrier_near_miss.c";
    wait_for_member: "wait_for_member.c";
    wait_for_member_near_miss: "wait_for_member_near_miss.c";
    wait_for_progress: "wait_for_progress.c";
    wait_for_progress_collective: "wait_for_progress_collective.c";
    wait_for_progress_messages: "wait_for_progress_messages.c";
    wait_for_progress_messages_near_miss: "wait_for_progress_messages_near_miss.c";
    wait_for_progress_near_miss: "wait_for_progress_near_miss.c";
    competing_put: "competing_put.c";
    competing_get: "competing_get.c";
    competing_get_window: "competing_get_window.c";
    competing_put_window: "competing_put_window.c";
    competing_near_miss: "competing_near_miss.c";
    wait_on_lock: "wait_on_lock.c";
    wait_on_lock_near_miss: "wait_on_lock_near_miss.c";
    wait_on_value: "wait_on_value.c";
    wait_on_value_contexts: "wait_on_value_contexts.c";
    wait_on_value_near_miss: "wait_on_value_near_miss.c";
    wait_on_value_polled: "wait_on_value_polled.c";
    wait_on_value_atomics: "wait_on_value_atomics.c";
    wait_at_window: "wait_at_window.c";
    wait_at_window_near_miss: "wait_at_window_near_miss.c";
    waitall_send_and_receive: "waitall_send_and_receive.c";
    waitall_with_collectives: "waitall_with_collectives.c";
    waitall_with_transfers: "waitall_with_transfers.c";
    window_kinds: "window_kinds.c";
    wrong_order_other_source: "wrong_order_other_source.c";
    wrong_order_other_source_near_miss: "wrong_order_other_source_near_miss.c";
    wrong_order_same_source: "wrong_order_same_source.c";
    wrong_order_same_source_near_miss: "wrong_order_same_source_near_miss.c";
    wrong_order_waitall_near_miss: "wrong_order_waitall_near_miss.c";
    wrong_order_wildcard_near_miss: "wrong_order_wildcard_near_miss.c";
}

/// The sources in the directory, without headers and the programs of other tests.
fn sources() -> BTreeSet<String> {
    let entries = std::fs::read_dir(programs()).expect("the programs");
    let names = entries.map(|e| {
        e.expect("an entry")
            .file_name()
            .into_string()
            .expect("a name")
    });
    let is_program = |name: &String| {
        [".c", ".cpp", ".f", ".f90", ".py"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    names.filter(is_program).collect()
}

#[test]
fn every_program_is_tested() {
    let tested: BTreeSet<String> = PROGRAMS.iter().map(|p| p.to_string()).collect();
    assert_eq!(sources(), tested);
}

#[test]
fn every_source_has_good_directives() {
    for source in sources() {
        let text = std::fs::read_to_string(programs().join(&source)).expect("a source");
        if let Err(error) = Directives::parse(&text) {
            panic!("{source}: {error}");
        }
    }
}
