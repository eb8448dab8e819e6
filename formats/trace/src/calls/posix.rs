//! The table of POSIX I/O: functions of the C library that reach files, pipes and sockets.
//!
//! ```text
//! number name generic-type shape class(meaning of the arguments) {
//!     "symbol" (parameters) -> result;
//! }
//! ```
//!
//! A source that calls `open` may reach several symbols of the C library: `open64` if its
//! offsets have 64 bits, `__open_2` if the compiler checks arguments. All symbols of a row are
//! recorded under the row's name. *class* says what the result tells about the bytes moved:
//!
//! - `nothing`: none are;
//! - `input(unit)` and `output(unit)`: the result counts units of this many bytes;
//! - `line(buffer, size)`: a string was read into the buffer;
//! - `text(bytes)`: the call succeeds with all bytes or fails.
//!
//! *Not in the table.* Functions whose formatted text has no fixed parameters (`printf`,
//! `fscanf`): a wrapper could not pass them on. Functions for single characters (`fputc`,
//! `fgetc`) are cheaper than their wrapper.
//!
//! Numbers appear in traces: they never change and are never reused. New rows take new numbers.

/// Calls `$callback!` with all rows of the table.
#[macro_export]
macro_rules! posix_calls {
    ($callback:ident) => {
        $callback! {
            600 open Io Single nothing() {
                "open" (path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
                "open64" (path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
                "__open_2" (path: *const c_char, flags: c_int) -> c_int;
                "__open64_2" (path: *const c_char, flags: c_int) -> c_int;
            }
            601 openat Io Single nothing() {
                "openat" (directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
                "openat64" (directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
                "__openat_2" (directory: c_int, path: *const c_char, flags: c_int) -> c_int;
                "__openat64_2" (directory: c_int, path: *const c_char, flags: c_int) -> c_int;
            }
            602 creat Io Single nothing() {
                "creat" (path: *const c_char, mode: c_uint) -> c_int;
                "creat64" (path: *const c_char, mode: c_uint) -> c_int;
            }
            603 close Io Single nothing() {
                "close" (fd: c_int) -> c_int;
            }
            604 read Io Single input(1) {
                "read" (fd: c_int, buffer: *mut c_void, bytes: usize) -> isize;
                "__read_chk" (fd: c_int, buffer: *mut c_void, bytes: usize, room: usize) -> isize;
            }
            605 pread Io Single input(1) {
                "pread" (fd: c_int, buffer: *mut c_void, bytes: usize, offset: i64) -> isize;
                "pread64" (fd: c_int, buffer: *mut c_void, bytes: usize, offset: i64) -> isize;
                "__pread_chk" (fd: c_int, buffer: *mut c_void, bytes: usize, offset: i64, room: usize) -> isize;
                "__pread64_chk" (fd: c_int, buffer: *mut c_void, bytes: usize, offset: i64, room: usize) -> isize;
            }
            606 readv Io Single input(1) {
                "readv" (fd: c_int, parts: *const c_void, count: c_int) -> isize;
            }
            607 preadv Io Single input(1) {
                "preadv" (fd: c_int, parts: *const c_void, count: c_int, offset: i64) -> isize;
                "preadv64" (fd: c_int, parts: *const c_void, count: c_int, offset: i64) -> isize;
            }
            608 write Io Single output(1) {
                "write" (fd: c_int, buffer: *const c_void, bytes: usize) -> isize;
            }
            609 pwrite Io Single output(1) {
                "pwrite" (fd: c_int, buffer: *const c_void, bytes: usize, offset: i64) -> isize;
                "pwrite64" (fd: c_int, buffer: *const c_void, bytes: usize, offset: i64) -> isize;
            }
            610 writev Io Single output(1) {
                "writev" (fd: c_int, parts: *const c_void, count: c_int) -> isize;
            }
            611 pwritev Io Single output(1) {
                "pwritev" (fd: c_int, parts: *const c_void, count: c_int, offset: i64) -> isize;
                "pwritev64" (fd: c_int, parts: *const c_void, count: c_int, offset: i64) -> isize;
            }
            612 fsync Io Single nothing() {
                "fsync" (fd: c_int) -> c_int;
            }
            613 fdatasync Io Single nothing() {
                "fdatasync" (fd: c_int) -> c_int;
            }
            614 ftruncate Io Single nothing() {
                "ftruncate" (fd: c_int, length: i64) -> c_int;
                "ftruncate64" (fd: c_int, length: i64) -> c_int;
            }
            // Streams: what reaches the system is what lasts.
            615 fopen Io Single nothing() {
                "fopen" (path: *const c_char, mode: *const c_char) -> *mut c_void;
                "fopen64" (path: *const c_char, mode: *const c_char) -> *mut c_void;
            }
            616 freopen Io Single nothing() {
                "freopen" (path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void;
                "freopen64" (path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void;
            }
            617 fclose Io Single nothing() {
                "fclose" (stream: *mut c_void) -> c_int;
            }
            618 fflush Io Single nothing() {
                "fflush" (stream: *mut c_void) -> c_int;
                "fflush_unlocked" (stream: *mut c_void) -> c_int;
            }
            619 fread Io Single input(size) {
                "fread" (buffer: *mut c_void, size: usize, count: usize, stream: *mut c_void) -> usize;
                "fread_unlocked" (buffer: *mut c_void, size: usize, count: usize, stream: *mut c_void) -> usize;
                "__fread_chk" (buffer: *mut c_void, room: usize, size: usize, count: usize, stream: *mut c_void) -> usize;
                "__fread_unlocked_chk" (buffer: *mut c_void, room: usize, size: usize, count: usize, stream: *mut c_void) -> usize;
            }
            620 fwrite Io Single output(size) {
                "fwrite" (buffer: *const c_void, size: usize, count: usize, stream: *mut c_void) -> usize;
                "fwrite_unlocked" (buffer: *const c_void, size: usize, count: usize, stream: *mut c_void) -> usize;
            }
            621 fgets Io Single line(buffer, size) {
                "fgets" (buffer: *mut c_char, size: c_int, stream: *mut c_void) -> *mut c_void;
                "fgets_unlocked" (buffer: *mut c_char, size: c_int, stream: *mut c_void) -> *mut c_void;
                "__fgets_chk" (buffer: *mut c_char, room: usize, size: c_int, stream: *mut c_void) -> *mut c_void;
                "__fgets_unlocked_chk" (buffer: *mut c_char, room: usize, size: c_int, stream: *mut c_void) -> *mut c_void;
            }
            622 fputs Io Single text(length(string)) {
                "fputs" (string: *const c_char, stream: *mut c_void) -> c_int;
                "fputs_unlocked" (string: *const c_char, stream: *mut c_void) -> c_int;
            }
            // With the end of the line, which it adds.
            623 puts Io Single text(length(string) + 1) {
                "puts" (string: *const c_char) -> c_int;
            }
            624 getdelim Io Single input(1) {
                "getdelim" (line: *mut *mut c_char, room: *mut usize, delimiter: c_int, stream: *mut c_void) -> isize;
                "__getdelim" (line: *mut *mut c_char, room: *mut usize, delimiter: c_int, stream: *mut c_void) -> isize;
            }
            625 getline Io Single input(1) {
                "getline" (line: *mut *mut c_char, room: *mut usize, stream: *mut c_void) -> isize;
            }
            626 fseek Io Single nothing() {
                "fseek" (stream: *mut c_void, offset: c_long, whence: c_int) -> c_int;
            }
            627 fseeko Io Single nothing() {
                "fseeko" (stream: *mut c_void, offset: i64, whence: c_int) -> c_int;
                "fseeko64" (stream: *mut c_void, offset: i64, whence: c_int) -> c_int;
            }
        }
    };
}
