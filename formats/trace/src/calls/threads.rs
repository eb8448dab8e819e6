//! The table of waits among the threads of a rank: OpenMP, and locks of POSIX threads.
//!
//! ```text
//! number name generic-type shape
//! ```
//!
//! They are no library calls one by one: an OpenMP runtime has several entry points for each.
//!
//! Numbers appear in traces: they never change and are never reused. New rows take new numbers.

/// Calls `$callback!` with all rows of the table.
#[macro_export]
macro_rules! thread_calls {
    ($callback:ident) => {
        $callback! {
            900 omp_parallel Threads Single;
            901 omp_parallel_end Threads Single;
            902 omp_idle Threads Single;
            903 omp_barrier Threads Single;
            904 omp_loop_end Threads Single;
            905 omp_sections_end Threads Single;
            906 omp_critical Threads Single;
            907 omp_critical_end Threads Single;
            908 omp_set_lock Threads Single;
            909 omp_unset_lock Threads Single;
            910 omp_taskwait Threads Single;
            911 omp_taskgroup_end Threads Single;
            912 omp_task_end Threads Single;
            913 omp_task_idle Threads Single;
            914 omp_set_nest_lock Threads Single;
            915 omp_unset_nest_lock Threads Single;
            916 omp_ordered Threads Single;
            917 omp_ordered_end Threads Single;
            920 pthread_mutex_lock Threads Single;
            921 pthread_mutex_unlock Threads Single;
            922 pthread_cond_wait Threads Single;
            923 pthread_cond_signal Threads Single;
            924 pthread_barrier_wait Threads Single;
            925 sem_wait Threads Single;
            926 sem_post Threads Single;
            927 pthread_join Threads Single;
            928 pthread_exit Threads Single;
            929 pthread_rwlock_rdlock Threads Single;
            930 pthread_rwlock_wrlock Threads Single;
            931 pthread_rwlock_unlock Threads Single;
            932 pthread_spin_lock Threads Single;
            933 pthread_spin_unlock Threads Single;
            934 futex_wait Threads Single;
            935 futex_wake Threads Single;
            936 mtx_lock Threads Single;
            937 mtx_unlock Threads Single;
            938 cnd_wait Threads Single;
            939 cnd_signal Threads Single;
            940 thrd_join Threads Single;
        }
    };
}
