//! Facts about the program and its machine.

use std::ffi::CStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use laggard_trace::Clock;

use crate::exports::real;
use crate::hash::Identity;
use crate::options::Options;

/// The program and its arguments.
pub fn command_line() -> Vec<Vec<u8>> {
    let mut text = fs::read("/proc/self/cmdline").unwrap_or_default();
    if text.last() == Some(&0) {
        text.pop();
    }
    text.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// Version text of the MPI library, several lines.
fn library_version() -> String {
    // Exceeds MPI_MAX_LIBRARY_VERSION_STRING of the known libraries (MPICH: 8192).
    let mut text = vec![0 as std::ffi::c_char; 16384];
    let mut length = 0;
    // SAFETY: the buffer holds the longest text of the library; MPI is initialised.
    unsafe { real::MPI_Get_library_version(text.as_mut_ptr(), &mut length) };
    // SAFETY: the buffer was zeroed, so the text is terminated.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    text.to_string_lossy().into_owned()
}

/// Name and version of the MPI library, one line.
pub fn mpi_library() -> String {
    let text = library_version();
    text.lines().next().unwrap_or("").trim().to_owned()
}

/// The device of MPICH, such as ch4:ucx; empty if the library does not say.
fn mpi_device() -> String {
    let text = library_version();
    let mut lines = text.lines();
    let device = lines.find_map(|line| line.strip_prefix("MPICH Device:"));
    device.unwrap_or("").trim().to_owned()
}

/// Settings of MPI libraries that choose the transport and which messages wait for their
/// receive.
const SETTINGS: [&str; 6] = [
    "OMPI_MCA_pml",
    "OMPI_MCA_btl",
    "OMPI_MCA_btl_vader_eager_limit",
    "OMPI_MCA_btl_sm_eager_limit",
    "OMPI_MCA_btl_tcp_eager_limit",
    "UCX_RNDV_THRESH",
];
/// Longest setting kept, bytes.
const LONGEST_SETTING: usize = 200;

/// The settings in the environment: `NAME=value`.
fn settings() -> impl Iterator<Item = Vec<u8>> {
    SETTINGS.iter().filter_map(|name| {
        let value = std::env::var_os(name)?;
        let short = value.len() <= LONGEST_SETTING;
        short.then(|| [name.as_bytes(), b"=", value.as_bytes()].concat())
    })
}

/// The family of MPI libraries whose `mpi.h` this was built with.
pub const FAMILY: &str = if cfg!(open_mpi) {
    "Open MPI"
} else if cfg!(mpich) {
    "MPICH"
} else {
    "another MPI"
};

/// Tells the command, which picks a collector for a program, what this one was built for.
#[used]
#[unsafe(no_mangle)]
#[cfg(open_mpi)]
#[allow(non_upper_case_globals)]
static laggard_for_openmpi: u8 = 1;
/// As for Open MPI.
#[used]
#[unsafe(no_mangle)]
#[cfg(mpich)]
#[allow(non_upper_case_globals)]
static laggard_for_mpich: u8 = 1;

/// Whether the MPI library at run time belongs to the family built for. Handles of another
/// family would mean nothing.
pub fn is_expected_library() -> bool {
    let library = mpi_library();
    if cfg!(open_mpi) {
        library.contains("Open MPI")
    } else if cfg!(mpich) {
        ["MPICH", "MVAPICH", "Intel"]
            .iter()
            .any(|name| library.contains(name))
    } else {
        true
    }
}

/// Whether this process may speak for its job before MPI tells its rank: the launcher numbers
/// it 0, or gives no number.
pub fn may_speak() -> bool {
    let names = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];
    let rank = names.iter().find_map(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank == "0")
}

pub fn host_name() -> Vec<u8> {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is valid, and its last byte stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(name.len());
    name[..end].to_vec()
}

/// Bytes read of `/proc/cpuinfo`, enough for the first processor. The kernel makes the text
/// while it is read; all processors would take long.
const FIRST_PROCESSOR: usize = 4096;

/// Model of the processor; empty if the system does not say.
pub fn processor() -> Vec<u8> {
    let mut text = vec![0; FIRST_PROCESSOR];
    let read = fs::File::open("/proc/cpuinfo").and_then(|mut file| file.read(&mut text));
    text.truncate(read.unwrap_or(0));
    model(&text).to_vec()
}

/// The model at the start of a text of `/proc/cpuinfo`: the name, or the part number on ARM,
/// which gives no name.
fn model(text: &[u8]) -> &[u8] {
    let value = |key: &[u8]| {
        let lines = text.split(|&byte| byte == b'\n');
        let mut values = lines.filter_map(|line| line.strip_prefix(key));
        let value = values.next()?.trim_ascii_start().strip_prefix(b":")?;
        Some(value.trim_ascii())
    };
    let found = value(b"model name").or_else(|| value(b"CPU part"));
    found.unwrap_or_default()
}

/// An identity of the host since its last boot. Processes with equal ones share `clock`.
pub fn host_id(clock: u32) -> u64 {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let id = Identity::new(0x686f_7374)
        .with_bytes(&host_name())
        .with_bytes(&boot)
        .with(namespace("uts"));
    match time_namespace(clock) {
        0 => id.id(),
        namespace => id.with(namespace).id(),
    }
}

/// Offset of a clock on this machine: each time namespace has its own. Counters have none, 0.
fn time_namespace(clock: u32) -> u64 {
    match clock == Clock::Monotonic as u32 {
        true => namespace("time"),
        false => 0,
    }
}

fn namespace(name: &str) -> u64 {
    fs::metadata(format!("/proc/self/ns/{name}")).map_or(0, |file| file.ino())
}

/// A colour for `MPI_Comm_split`: processes on one machine with equal colours share `clock`.
pub fn clock_colour(clock: u32) -> i32 {
    let id = Identity::new(u64::from(clock)).with(time_namespace(clock));
    (id.id() >> 33) as i32
}

/// Processors that a thread of this process may run on, 0 = the calling one, ascending; empty if the system does not
/// say.
fn affinity(thread: u32) -> Vec<usize> {
    // Larger than `cpu_set_t`, and not on the stack: threads may have little.
    let mut mask = vec![0u64; 256];
    // SAFETY: the system writes at most the given number of bytes.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            thread,
            size_of_val(&*mask),
            mask.as_mut_ptr(),
        )
    };
    if written <= 0 {
        return Vec::new();
    }
    let is_set = |&number: &usize| mask[number / 64] >> (number % 64) & 1 != 0;
    (0..64 * mask.len()).filter(is_set).collect()
}

/// The same, as the system lists them.
pub fn processors_of(thread: u32) -> String {
    ranges(&affinity(thread))
}

/// Formats ascending numbers as the system does: `0-3,8`.
fn ranges(numbers: &[usize]) -> String {
    let parts = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    parts.collect::<Vec<_>>().join(",")
}

/// Properties of every location.
pub fn properties(options: &Options, rank: i32) -> Vec<(&'static str, Vec<u8>)> {
    let mut level = 0;
    // SAFETY: MPI is initialised.
    unsafe { real::MPI_Query_thread(&mut level) };
    let executable =
        fs::read_link("/proc/self/exe").map(|path| path.as_os_str().as_bytes().to_vec());
    let command = command_line();
    let program = command.first().cloned().unwrap_or_default();
    let mut properties = vec![("program", program)];
    properties.extend(
        command
            .iter()
            .skip(1)
            .map(|argument| ("argument", argument.clone())),
    );
    properties.extend([
        ("executable", executable.unwrap_or_default()),
        ("host", host_name()),
        ("cpu", processor()),
        ("mpi_library", mpi_library().into_bytes()),
        ("thread_level", level.to_string().into_bytes()),
        ("pid", std::process::id().to_string().into_bytes()),
        ("rank", rank.to_string().into_bytes()),
        ("collector", env!("CARGO_PKG_VERSION").as_bytes().to_vec()),
        (
            "callpath_depth",
            options.callpath_depth.to_string().into_bytes(),
        ),
    ]);
    let quota = std::thread::available_parallelism().map_or(0, usize::from);
    if (1..affinity(0).len()).contains(&quota) {
        properties.push(("processor_quota", quota.to_string().into_bytes()));
    }
    properties
        .extend(Some(("mpi_device", mpi_device().into_bytes())).filter(|told| !told.1.is_empty()));
    properties.extend(settings().map(|setting| ("setting", setting)));
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_as_the_system_does() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(ranges(&[]), "");
        let own = affinity(0);
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(ranges(&own), allowed.unwrap().trim());
        // SAFETY: it takes no arguments.
        let thread = unsafe { libc::gettid() }.cast_unsigned();
        assert_eq!(processors_of(thread), ranges(&own));
        assert_eq!(processors_of(u32::MAX >> 1), "");
    }

    #[test]
    fn processors_tell_their_model_or_part() {
        let intel =
            b"processor\t: 0\nmodel\t\t: 85\nmodel name\t: Xeon(R)  2.1 GHz \nstepping: 4\n";
        assert_eq!(model(intel), b"Xeon(R)  2.1 GHz");
        let arm = b"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(model(arm), b"0xd0c");
        assert_eq!(model(b"processor : 0\nmodel name"), b"");
    }
}
