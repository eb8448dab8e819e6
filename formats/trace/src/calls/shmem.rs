//! The table of calls of OpenSHMEM: families of functions times types, one row per family.
//!
//! ```text
//! number types prefix suffix generic-type shape class(meaning of the arguments) (parameters) -> result;
//! ```
//!
//! A function's name is prefix, type, suffix. Its number is the family's plus the type's in
//! [`shmem_types!`](crate::shmem_types). `T` is the type in C, `SIZE` its size in bytes,
//! `bytes(n)` the size of n elements. Everything else is derived, as for MPI's table: numbers
//! and names here, the exported wrappers in the collector. Numbers appear in traces: they never
//! change and are never reused. New families take new numbers, multiples of 32.

/// Calls `$callback!` with all families.
#[macro_export]
macro_rules! shmem_calls {
    ($callback:ident) => {
        $callback! {
            // Start and end.
            1024 none "" "shmem_init" Setup Init init() () -> ();
            1025 none "" "shmem_init_thread" Setup Init init() (requested: c_int, provided: *mut c_int) -> c_int;
            1026 none "" "start_pes" Setup Init init() (npes: c_int) -> ();
            1027 none "" "shmem_finalize" GroupSync Finalize finalize() () -> ();
            1028 none "" "shmem_global_exit" Setup Single global_exit(status) (status: c_int) -> ();
            // Symmetric memory: all PEs take part.
            1030 none "" "shmem_malloc" GroupSync PeBarrier memory(size) (size: usize) -> *mut c_void;
            1031 none "" "shmem_calloc" GroupSync PeBarrier memory(size.saturating_mul(count)) (count: usize, size: usize) -> *mut c_void;
            1032 none "" "shmem_align" GroupSync PeBarrier memory(size) (alignment: usize, size: usize) -> *mut c_void;
            1033 none "" "shmem_realloc" GroupSync PeBarrier memory(size) (pointer: *mut c_void, size: usize) -> *mut c_void;
            1034 none "" "shmem_free" GroupSync PeBarrier memory(0) (pointer: *mut c_void) -> ();
            1035 none "" "shmalloc" GroupSync PeBarrier memory(size) (size: usize) -> *mut c_void;
            1036 none "" "shmemalign" GroupSync PeBarrier memory(size) (alignment: usize, size: usize) -> *mut c_void;
            1037 none "" "shrealloc" GroupSync PeBarrier memory(size) (pointer: *mut c_void, size: usize) -> *mut c_void;
            1038 none "" "shfree" GroupSync PeBarrier memory(0) (pointer: *mut c_void) -> ();
            1039 none "" "shmemx_malloc_with_hint" GroupSync PeBarrier memory(size) (size: usize, hint: c_long) -> *mut c_void;
            // Meetings.
            1040 none "" "shmem_barrier_all" GroupSync PeBarrier meeting(everybody(), 0, 0) () -> ();
            1041 none "" "shmem_barrier" GroupSync PeBarrier meeting(active_set(pe_start, log_stride, pe_size), 0, 0) (pe_start: c_int, log_stride: c_int, pe_size: c_int, psync: *mut c_long) -> ();
            1042 none "" "shmem_sync_all" GroupSync PeBarrier meeting(everybody(), 0, 0) () -> ();
            1043 none "" "shmem_sync" GroupSync PeBarrier meeting(active_set(pe_start, log_stride, pe_size), 0, 0) (pe_start: c_int, log_stride: c_int, pe_size: c_int, psync: *mut c_long) -> ();
            // Completion and order of transfers, and contexts.
            1044 none "" "shmem_quiet" Completion Single plain() () -> ();
            1045 none "" "shmem_fence" Completion Single plain() () -> ();
            1046 none "" "shmem_ctx_quiet" Completion Single plain() (ctx: Context) -> ();
            1047 none "" "shmem_ctx_fence" Completion Single plain() (ctx: Context) -> ();
            1048 none "" "shmem_ctx_create" Setup Single plain() (options: c_long, ctx: *mut Context) -> c_int;
            1049 none "" "shmem_ctx_destroy" Setup Single plain() (ctx: Context) -> ();
            // Locks, and waiting for a value.
            1050 none "" "shmem_set_lock" Lock Single lock(lock_) (lock_: *mut c_long) -> ();
            1051 none "" "shmem_test_lock" Lock Single test_lock(lock_) (lock_: *mut c_long) -> c_int;
            1052 none "" "shmem_clear_lock" Unlock Single lock(lock_) (lock_: *mut c_long) -> ();
            1053 none "" "shmem_wait" WaitOnValue Single wait(address, NOT_EQUAL, size_of::<c_long>(), value.word()) (address: *mut c_void, value: c_long) -> ();
            // Transfers. The number in a sized name is the bits of an element.
            1152 all "shmem_" "_put" OneSidedPut Single put(pe, target, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1152 sized "shmem_put" "" OneSidedPut Single put(pe, target, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1152 memory "shmem_put" "" OneSidedPut Single put(pe, target, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1184 all "shmem_ctx_" "_put" OneSidedPut Single put(pe, target, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1184 sized "shmem_ctx_put" "" OneSidedPut Single put(pe, target, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1184 memory "shmem_ctx_put" "" OneSidedPut Single put(pe, target, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1216 all "shmem_" "_get" OneSidedGet Single get(pe, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1216 sized "shmem_get" "" OneSidedGet Single get(pe, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1216 memory "shmem_get" "" OneSidedGet Single get(pe, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1248 all "shmem_ctx_" "_get" OneSidedGet Single get(pe, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1248 sized "shmem_ctx_get" "" OneSidedGet Single get(pe, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1248 memory "shmem_ctx_get" "" OneSidedGet Single get(pe, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1280 values "shmem_" "_p" OneSidedPut Single put_value(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            1312 values "shmem_ctx_" "_p" OneSidedPut Single put_value(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> ();
            1344 values "shmem_" "_g" OneSidedGet Single get(pe, source, SIZE) (source: *const c_void, pe: c_int) -> T;
            1376 values "shmem_ctx_" "_g" OneSidedGet Single get(pe, source, SIZE) (ctx: Context, source: *const c_void, pe: c_int) -> T;
            1408 all "shmem_" "_iput" OneSidedPut Single put_strided(pe, target, tst, bytes(len)) (target: *mut c_void, source: *const c_void, tst: isize, sst: isize, len: usize, pe: c_int) -> ();
            1408 sized "shmem_iput" "" OneSidedPut Single put_strided(pe, target, tst, bytes(len)) (target: *mut c_void, source: *const c_void, tst: isize, sst: isize, len: usize, pe: c_int) -> ();
            1440 all "shmem_ctx_" "_iput" OneSidedPut Single put_strided(pe, target, tst, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, tst: isize, sst: isize, len: usize, pe: c_int) -> ();
            1440 sized "shmem_ctx_iput" "" OneSidedPut Single put_strided(pe, target, tst, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, tst: isize, sst: isize, len: usize, pe: c_int) -> ();
            1472 all "shmem_" "_iget" OneSidedGet Single get_strided(pe, source, sst, bytes(len)) (target: *mut c_void, source: *const c_void, tst: isize, sst: isize, len: usize, pe: c_int) -> ();
            1472 sized "shmem_iget" "" OneSidedGet Single get_strided(pe, source, sst, bytes(len)) (target: *mut c_void, source: *const c_void, tst: isize, sst: isize, len: usize, pe: c_int) -> ();
            1504 all "shmem_ctx_" "_iget" OneSidedGet Single get_strided(pe, source, sst, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, tst: isize, sst: isize, len: usize, pe: c_int) -> ();
            1504 sized "shmem_ctx_iget" "" OneSidedGet Single get_strided(pe, source, sst, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, tst: isize, sst: isize, len: usize, pe: c_int) -> ();
            1536 all "shmem_" "_put_nbi" OneSidedPut Single put(pe, target, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1536 sized "shmem_put" "_nbi" OneSidedPut Single put(pe, target, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1536 memory "shmem_put" "_nbi" OneSidedPut Single put(pe, target, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1568 all "shmem_ctx_" "_put_nbi" OneSidedPut Single put(pe, target, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1568 sized "shmem_ctx_put" "_nbi" OneSidedPut Single put(pe, target, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1568 memory "shmem_ctx_put" "_nbi" OneSidedPut Single put(pe, target, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1600 all "shmem_" "_get_nbi" OneSidedGet Single get(pe, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1600 sized "shmem_get" "_nbi" OneSidedGet Single get(pe, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1600 memory "shmem_get" "_nbi" OneSidedGet Single get(pe, source, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1632 all "shmem_ctx_" "_get_nbi" OneSidedGet Single get(pe, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1632 sized "shmem_ctx_get" "_nbi" OneSidedGet Single get(pe, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            1632 memory "shmem_ctx_get" "_nbi" OneSidedGet Single get(pe, source, bytes(len)) (ctx: Context, target: *mut c_void, source: *const c_void, len: usize, pe: c_int) -> ();
            // Atomics.
            1664 atomic "shmem_" "_atomic_add" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            1696 atomic "shmem_ctx_" "_atomic_add" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> ();
            1728 atomic "shmem_" "_atomic_fetch_add" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            1760 atomic "shmem_ctx_" "_atomic_fetch_add" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> T;
            1792 atomic "shmem_" "_atomic_inc" OneSidedAtomic Single atomic(pe, target, SIZE, 1) (target: *mut c_void, pe: c_int) -> ();
            1824 atomic "shmem_ctx_" "_atomic_inc" OneSidedAtomic Single atomic(pe, target, SIZE, 1) (ctx: Context, target: *mut c_void, pe: c_int) -> ();
            1856 atomic "shmem_" "_atomic_fetch_inc" OneSidedAtomic Single atomic(pe, target, SIZE, 1) (target: *mut c_void, pe: c_int) -> T;
            1888 atomic "shmem_ctx_" "_atomic_fetch_inc" OneSidedAtomic Single atomic(pe, target, SIZE, 1) (ctx: Context, target: *mut c_void, pe: c_int) -> T;
            1920 atomic "shmem_" "_atomic_compare_swap" OneSidedAtomic Single compare_swap(pe, target, SIZE, cond.word(), value.word()) (target: *mut c_void, cond: T, value: T, pe: c_int) -> T;
            1952 atomic "shmem_ctx_" "_atomic_compare_swap" OneSidedAtomic Single compare_swap(pe, target, SIZE, cond.word(), value.word()) (ctx: Context, target: *mut c_void, cond: T, value: T, pe: c_int) -> T;
            1984 swaps "shmem_" "_atomic_fetch" OneSidedAtomic Single atomic_read(pe, target, SIZE) (target: *mut c_void, pe: c_int) -> T;
            2016 swaps "shmem_ctx_" "_atomic_fetch" OneSidedAtomic Single atomic_read(pe, target, SIZE) (ctx: Context, target: *mut c_void, pe: c_int) -> T;
            2048 swaps "shmem_" "_atomic_set" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2080 swaps "shmem_ctx_" "_atomic_set" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> ();
            2112 swaps "shmem_" "_atomic_swap" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2144 swaps "shmem_ctx_" "_atomic_swap" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> T;
            2176 bitwise "shmem_" "_atomic_and" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2208 bitwise "shmem_ctx_" "_atomic_and" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> ();
            2240 bitwise "shmem_" "_atomic_fetch_and" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2272 bitwise "shmem_ctx_" "_atomic_fetch_and" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> T;
            2304 bitwise "shmem_" "_atomic_or" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2336 bitwise "shmem_ctx_" "_atomic_or" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> ();
            2368 bitwise "shmem_" "_atomic_fetch_or" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2400 bitwise "shmem_ctx_" "_atomic_fetch_or" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> T;
            2432 bitwise "shmem_" "_atomic_xor" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2464 bitwise "shmem_ctx_" "_atomic_xor" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> ();
            2496 bitwise "shmem_" "_atomic_fetch_xor" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2528 bitwise "shmem_ctx_" "_atomic_fetch_xor" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (ctx: Context, target: *mut c_void, value: T, pe: c_int) -> T;
            // Atomics by their older names, and with fixed sizes.
            2560 old "shmem_" "_add" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2560 fixed "shmemx_" "_add" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2592 old "shmem_" "_fadd" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2592 fixed "shmemx_" "_fadd" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2624 old "shmem_" "_inc" OneSidedAtomic Single atomic(pe, target, SIZE, 1) (target: *mut c_void, pe: c_int) -> ();
            2624 fixed "shmemx_" "_inc" OneSidedAtomic Single atomic(pe, target, SIZE, 1) (target: *mut c_void, pe: c_int) -> ();
            2656 old "shmem_" "_finc" OneSidedAtomic Single atomic(pe, target, SIZE, 1) (target: *mut c_void, pe: c_int) -> T;
            2656 fixed "shmemx_" "_finc" OneSidedAtomic Single atomic(pe, target, SIZE, 1) (target: *mut c_void, pe: c_int) -> T;
            2688 old "shmem_" "_cswap" OneSidedAtomic Single compare_swap(pe, target, SIZE, cond.word(), value.word()) (target: *mut c_void, cond: T, value: T, pe: c_int) -> T;
            2688 fixed "shmemx_" "_cswap" OneSidedAtomic Single compare_swap(pe, target, SIZE, cond.word(), value.word()) (target: *mut c_void, cond: T, value: T, pe: c_int) -> T;
            2720 old_swaps "shmem_" "_fetch" OneSidedAtomic Single atomic_read(pe, target, SIZE) (target: *mut c_void, pe: c_int) -> T;
            2720 fixed "shmemx_" "_fetch" OneSidedAtomic Single atomic_read(pe, target, SIZE) (target: *mut c_void, pe: c_int) -> T;
            2752 old_swaps "shmem_" "_set" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2752 fixed "shmemx_" "_set" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2784 old_swaps "shmem_" "_swap" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2784 fixed "shmemx_" "_swap" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2816 fixed_bits "shmemx_" "_atomic_and" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2848 fixed_bits "shmemx_" "_atomic_fetch_and" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2880 fixed_bits "shmemx_" "_atomic_or" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2912 fixed_bits "shmemx_" "_atomic_fetch_or" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            2944 fixed_bits "shmemx_" "_atomic_xor" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            2976 fixed_bits "shmemx_" "_atomic_fetch_xor" OneSidedAtomic Single atomic(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> T;
            3008 fixed_values "shmemx_" "_p" OneSidedPut Single put_value(pe, target, SIZE, value.word()) (target: *mut c_void, value: T, pe: c_int) -> ();
            3040 fixed_values "shmemx_" "_g" OneSidedGet Single get(pe, source, SIZE) (source: *const c_void, pe: c_int) -> T;
            // Waiting for a value.
            3072 old_waits "shmem_" "_wait" WaitOnValue Single wait(address, NOT_EQUAL, SIZE, value.word()) (address: *mut c_void, value: T) -> ();
            3072 fixed "shmemx_" "_wait" WaitOnValue Single wait(address, NOT_EQUAL, SIZE, value.word()) (address: *mut c_void, value: T) -> ();
            3104 waits "shmem_" "_wait_until" WaitOnValue Single wait(address, comparison, SIZE, value.word()) (address: *mut c_void, comparison: c_int, value: T) -> ();
            3136 fixed "shmemx_" "_wait_until" WaitOnValue Single wait(address, comparison, SIZE, value.word()) (address: *mut c_void, comparison: c_int, value: T) -> ();
            3168 waits "shmem_" "_test" WaitOnValue Single test(address, comparison, SIZE, value.word()) (address: *mut c_void, comparison: c_int, value: T) -> c_int;
            // Collectives.
            3200 halves "shmem_broadcast" "" GroupComm OneToAll broadcast(active_set(pe_start, log_stride, pe_size), pe_root, bytes(len)) (target: *mut c_void, source: *const c_void, len: usize, pe_root: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, psync: *mut c_long) -> ();
            3232 halves "shmem_collect" "" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), bytes(len), 0) (target: *mut c_void, source: *const c_void, len: usize, pe_start: c_int, log_stride: c_int, pe_size: c_int, psync: *mut c_long) -> ();
            3264 halves "shmem_fcollect" "" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), bytes(len), each(bytes(len), pe_size)) (target: *mut c_void, source: *const c_void, len: usize, pe_start: c_int, log_stride: c_int, pe_size: c_int, psync: *mut c_long) -> ();
            3296 halves "shmem_alltoall" "" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(bytes(len), pe_size), each(bytes(len), pe_size)) (target: *mut c_void, source: *const c_void, len: usize, pe_start: c_int, log_stride: c_int, pe_size: c_int, psync: *mut c_long) -> ();
            3328 halves "shmem_alltoalls" "" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(bytes(len), pe_size), each(bytes(len), pe_size)) (target: *mut c_void, source: *const c_void, dst: isize, sst: isize, len: usize, pe_start: c_int, log_stride: c_int, pe_size: c_int, psync: *mut c_long) -> ();
            3360 integers "shmem_" "_and_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3392 fixed_values "shmemx_" "_and_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3424 integers "shmem_" "_or_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3456 fixed_values "shmemx_" "_or_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3488 integers "shmem_" "_xor_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3520 fixed_values "shmemx_" "_xor_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3552 numbers "shmem_" "_max_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3584 fixed_values "shmemx_" "_max_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3616 numbers "shmem_" "_min_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3648 fixed_values "shmemx_" "_min_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3680 with_complex "shmem_" "_sum_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3712 fixed_values "shmemx_" "_sum_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3744 with_complex "shmem_" "_prod_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
            3776 fixed_values "shmemx_" "_prod_to_all" GroupComm AllToAll meeting(active_set(pe_start, log_stride, pe_size), each(SIZE, count), each(SIZE, count)) (target: *mut c_void, source: *const c_void, count: c_int, pe_start: c_int, log_stride: c_int, pe_size: c_int, pwork: *mut c_void, psync: *mut c_long) -> ();
        }
    };
}

/// Calls `$callback!` with the types of a family (number, part of the name, type in C),
/// followed by the given tokens.
#[macro_export]
macro_rules! shmem_types {
    (none $callback:ident $($rest:tt)*) => { $callback! { [0 "" ();] $($rest)* } };
    (all $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                0 "char" c_char; 1 "short" c_short; 2 "int" c_int; 3 "long" c_long;
                4 "longlong" c_longlong; 5 "schar" c_schar; 6 "uchar" c_uchar; 7 "ushort" c_ushort;
                8 "uint" c_uint; 9 "ulong" c_ulong; 10 "ulonglong" c_ulonglong; 11 "float" f32;
                12 "double" f64; 13 "longdouble" LongDouble; 14 "int8" i8; 15 "int16" i16;
                16 "int32" i32; 17 "int64" i64; 18 "uint8" u8; 19 "uint16" u16;
                20 "uint32" u32; 21 "uint64" u64; 22 "size" usize; 23 "ptrdiff" isize;
            ]
            $($rest)*
        }
    };
    (values $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                0 "char" c_char; 1 "short" c_short; 2 "int" c_int; 3 "long" c_long;
                4 "longlong" c_longlong; 5 "schar" c_schar; 6 "uchar" c_uchar; 7 "ushort" c_ushort;
                8 "uint" c_uint; 9 "ulong" c_ulong; 10 "ulonglong" c_ulonglong; 11 "float" f32;
                12 "double" f64; 14 "int8" i8; 15 "int16" i16; 16 "int32" i32;
                17 "int64" i64; 18 "uint8" u8; 19 "uint16" u16; 20 "uint32" u32;
                21 "uint64" u64; 22 "size" usize; 23 "ptrdiff" isize;
            ]
            $($rest)*
        }
    };
    (sized $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                26 "8" u8; 27 "16" u16; 28 "32" u32; 29 "64" u64;
                30 "128" [u64; 2];
            ]
            $($rest)*
        }
    };
    (memory $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                31 "mem" u8;
            ]
            $($rest)*
        }
    };
    (halves $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                28 "32" u32; 29 "64" u64;
            ]
            $($rest)*
        }
    };
    (atomic $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong; 8 "uint" c_uint;
                9 "ulong" c_ulong; 10 "ulonglong" c_ulonglong;
            ]
            $($rest)*
        }
    };
    (swaps $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong; 8 "uint" c_uint;
                9 "ulong" c_ulong; 10 "ulonglong" c_ulonglong; 11 "float" f32; 12 "double" f64;
            ]
            $($rest)*
        }
    };
    (bitwise $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong; 8 "uint" c_uint;
                9 "ulong" c_ulong; 10 "ulonglong" c_ulonglong; 16 "int32" i32; 17 "int64" i64;
                20 "uint32" u32; 21 "uint64" u64;
            ]
            $($rest)*
        }
    };
    (old $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong;
            ]
            $($rest)*
        }
    };
    (old_swaps $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong; 11 "float" f32;
                12 "double" f64;
            ]
            $($rest)*
        }
    };
    (fixed $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                16 "int32" i32; 17 "int64" i64;
            ]
            $($rest)*
        }
    };
    (fixed_bits $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                16 "int32" i32; 17 "int64" i64; 20 "uint32" u32; 21 "uint64" u64;
            ]
            $($rest)*
        }
    };
    (fixed_values $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                15 "int16" i16; 16 "int32" i32; 17 "int64" i64;
            ]
            $($rest)*
        }
    };
    (old_waits $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                1 "short" c_short; 2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong;
            ]
            $($rest)*
        }
    };
    (waits $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                1 "short" c_short; 2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong;
                7 "ushort" c_ushort; 8 "uint" c_uint; 9 "ulong" c_ulong; 10 "ulonglong" c_ulonglong;
                16 "int32" i32; 17 "int64" i64; 20 "uint32" u32; 21 "uint64" u64;
                22 "size" usize; 23 "ptrdiff" isize;
            ]
            $($rest)*
        }
    };
    (integers $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                1 "short" c_short; 2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong;
            ]
            $($rest)*
        }
    };
    (numbers $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                1 "short" c_short; 2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong;
                11 "float" f32; 12 "double" f64; 13 "longdouble" LongDouble;
            ]
            $($rest)*
        }
    };
    (with_complex $callback:ident $($rest:tt)*) => {
        $callback! {
            [
                1 "short" c_short; 2 "int" c_int; 3 "long" c_long; 4 "longlong" c_longlong;
                11 "float" f32; 12 "double" f64; 13 "longdouble" LongDouble; 24 "complexf" [f32; 2];
                25 "complexd" [f64; 2];
            ]
            $($rest)*
        }
    };
}
