//! A network cable of any length between two network namespaces: for kernels without `netem`, and
//! with a delay of its own in each direction.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest frame, bytes.
const FRAME: usize = 1 << 16;
/// The end of the cable is noticed within this time.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A cable with a network device at both ends. It disappears when dropped.
pub struct Cable {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// From the first end to the second, and back, ns.
    delays: [AtomicU64; 2],
    is_over: AtomicBool,
}

impl Cable {
    /// Makes a cable without delay between new devices of these names in the network namespaces of
    /// these processes.
    ///
    /// # Errors
    /// Such devices cannot be made here.
    pub fn new(one: (u32, &str), other: (u32, &str)) -> io::Result<Cable> {
        let ends = [device(one.0, one.1)?, device(other.0, other.1)?];
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let thread = thread::spawn(move || carry(ends, &own));
        Ok(Cable {
            shared,
            thread: Some(thread),
        })
    }

    /// Sets the delays from the first end to the second, and back.
    pub fn delay(&self, forth: Duration, back: Duration) {
        for (delay, new) in self.shared.delays.iter().zip([forth, back]) {
            delay.store(new.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes a network device whose other end is this process.
fn device(process: u32, name: &str) -> io::Result<File> {
    let name = name.to_owned();
    // The device appears in the network of the calling thread, so a thread of its own makes it.
    let made = thread::spawn(move || {
        let namespace = File::open(format!("/proc/{process}/ns/net"))?;
        // SAFETY: plain system call; affects this thread alone.
        check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK);
        let end = options.open("/dev/net/tun")?;
        // SAFETY: plain old data.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(15)) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the request has the type that this call reads.
        check(unsafe { libc::ioctl(end.as_raw_fd(), libc::TUNSETIFF as _, &request) })?;
        Ok(end)
    });
    made.join()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Frames under way in one direction, and when they arrive.
type UnderWay = VecDeque<(Instant, Vec<u8>)>;

/// Carries frames from end to end, in their order.
fn carry(mut ends: [File; 2], shared: &Shared) {
    // SAFETY: plain system call; makes sleeps of this thread end on time.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
    let mut under_way: [UnderWay; 2] = Default::default();
    let mut frame = vec![0; FRAME];
    while !shared.is_over.load(Ordering::Relaxed) {
        for from in [0, 1] {
            deliver(&mut under_way[from], &mut ends[1 - from]);
        }
        wait(&ends, &under_way);
        let now = Instant::now();
        for from in [0, 1] {
            let delay = Duration::from_nanos(shared.delays[from].load(Ordering::Relaxed));
            // An end without frames returns an error.
            while let Ok(length @ 1..) = ends[from].read(&mut frame) {
                let before = under_way[from].back().map(|(due, _)| *due);
                let due = before.map_or(now + delay, |before| before.max(now + delay));
                under_way[from].push_back((due, frame[..length].to_vec()));
            }
        }
    }
}

/// Delivers the frames that have arrived. Frames that a device does not take are lost, as on any
/// network.
fn deliver(under_way: &mut UnderWay, end: &mut File) {
    while let Some((due, frame)) = under_way.front() {
        if *due > Instant::now() {
            break;
        }
        let _ = end.write(frame);
        under_way.pop_front();
    }
}

/// Waits until a frame enters the cable or arrives.
fn wait(ends: &[File; 2], under_way: &[UnderWay; 2]) {
    let next = under_way.iter().filter_map(|list| list.front());
    let next = next.map(|(due, _)| *due).min();
    let until = next.map_or(LONGEST_WAIT, |due| {
        due.saturating_duration_since(Instant::now())
            .min(LONGEST_WAIT)
    });
    let mut polled = ends.each_ref().map(|end| libc::pollfd {
        fd: end.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    let until = libc::timespec {
        tv_sec: until.as_secs() as libc::time_t,
        tv_nsec: until.subsec_nanos().into(),
    };
    // SAFETY: two entries, and no set of signals.
    unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &until, std::ptr::null()) };
}
