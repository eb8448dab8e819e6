//! The key-value store of MPICH's launcher: lines of text over a socket that each process
//! inherits.
//!
//! MPICH's processes exchange their addresses through this store (PMI, version 1) while MPI
//! starts. Each process puts its data, all meet at a barrier, and each gets the data of others.
//! A value put before MPI_Init is visible to all afterwards. The socket belongs to the MPI
//! library. The collector uses it only around MPI_Init, when the library does not, and reads
//! every answer before it asks again.
//!
//! *Constraint.* The MPI library would take an unread answer for the answer to its own
//! question. So the collector waits for every answer, as the library does.
//!
//! *Not supported.* Launchers other than MPICH's (Hydra). Slurm's, for one, offers a socket
//! under the same name. It applies the protocol version of the first request to all later ones,
//! so the collector must not ask it.

use std::ffi::c_int;

/// Longest answer, bytes; keys and values are shorter.
const LONGEST: usize = 4096;

/// Hydra gives each process the number of processes on its host; Slurm does not.
const OF_HYDRA: &str = "MPI_LOCALNRANKS";

/// The store as this process sees it.
pub struct Store {
    socket: c_int,
    /// Name of the job's part of the store, unique among jobs.
    pub name: String,
    /// Rank of this process in the job.
    pub rank: i32,
}

impl Store {
    /// Opens the store of a job of several processes; `None` if there is none.
    pub fn open() -> Option<Store> {
        Store::of(|name| std::env::var(name).ok())
    }

    /// As [`open`](Self::open), for a process with this environment.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Store> {
        let number = |name| variable(name)?.trim().parse::<i32>().ok();
        number(OF_HYDRA)?;
        let socket = number("PMI_FD").filter(|&socket| socket >= 0)?;
        let rank = number("PMI_RANK")?;
        if number("PMI_SIZE")? < 2 {
            return None;
        }
        let mut store = Store {
            socket,
            name: String::new(),
            rank,
        };
        // The store drops values that come before this. The MPI library may repeat it.
        let answer = store.ask("cmd=init pmi_version=1 pmi_subversion=1\n")?;
        value(&answer, "rc").filter(|&code| code == "0")?;
        let answer = store.ask("cmd=get_my_kvsname\n")?;
        store.name = value(&answer, "kvsname")?.to_owned();
        Some(store)
    }

    /// Puts a one-word value; returns whether the store accepted it.
    pub fn put(&self, key: &str, word: &str) -> bool {
        let name = &self.name;
        let answer = self.ask(&format!("cmd=put kvsname={name} key={key} value={word}\n"));
        answer.is_some_and(|answer| value(&answer, "rc") == Some("0"))
    }

    /// Whether the key has a value; `None` without an answer.
    pub fn has(&self, key: &str) -> Option<bool> {
        let name = &self.name;
        let answer = self.ask(&format!("cmd=get kvsname={name} key={key}\n"))?;
        (value(&answer, "cmd") == Some("get_result")).then(|| value(&answer, "rc") == Some("0"))
    }

    fn ask(&self, question: &str) -> Option<String> {
        let mut rest = question.as_bytes();
        while !rest.is_empty() {
            // SAFETY: the bytes of the question. No signal if the launcher is gone.
            let sent = unsafe {
                libc::send(
                    self.socket,
                    rest.as_ptr().cast(),
                    rest.len(),
                    libc::MSG_NOSIGNAL,
                )
            };
            match sent {
                ..0 if is_interrupted() => {}
                ..=0 => return None,
                sent => rest = rest.get(sent as usize..)?,
            }
        }
        // Exactly one line follows: there is no other question.
        let mut answer = [0u8; LONGEST];
        let mut length = 0;
        while length < LONGEST {
            let room = &mut answer[length..];
            // SAFETY: `room` is valid for its length.
            let got = unsafe { libc::recv(self.socket, room.as_mut_ptr().cast(), room.len(), 0) };
            match got {
                ..0 if is_interrupted() => {}
                ..0 if self.waits_for_more() => {}
                ..=0 => return None,
                got => length += got as usize,
            }
            if answer[..length].ends_with(b"\n") {
                return String::from_utf8(answer[..length].to_vec()).ok();
            }
        }
        None
    }

    /// Waits for input if the last error says that there is none yet: the socket may be
    /// non-blocking.
    fn waits_for_more(&self) -> bool {
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::WouldBlock {
            return false;
        }
        let mut entry = libc::pollfd {
            fd: self.socket,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid entry.
        let ready = unsafe { libc::poll(&mut entry, 1, -1) };
        ready == 1 || is_interrupted()
    }
}

fn is_interrupted() -> bool {
    std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
}

/// The word after `key=`.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn words_are_found_by_key() {
        let line = "cmd=get_result rc=-1 msg=key_not_found value=unknown";
        assert_eq!(value(line, "rc"), Some("-1"));
        assert_eq!(value(line, "value"), Some("unknown"));
        assert_eq!(value(line, "val"), None);
    }

    #[test]
    fn questions_get_their_answers() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let launcher = std::thread::spawn(move || {
            let answers = [
                "cmd=put_result rc=0 msg=success\n",
                "cmd=get_result rc=0 msg=success value=1\n",
                "cmd=get_result rc=-1 msg=key_k9_not_found value=unknown\n",
            ];
            let mut questions = BufReader::new(there.try_clone().unwrap());
            answers.map(|answer| {
                let mut line = String::new();
                questions.read_line(&mut line).unwrap();
                there.write_all(answer.as_bytes()).unwrap();
                line
            })
        });
        let store = Store {
            socket: here.as_raw_fd(),
            name: "kvs_1".into(),
            rank: 0,
        };
        assert!(store.put("k0", "1"));
        assert_eq!(
            (store.has("k0"), store.has("k9")),
            (Some(true), Some(false))
        );
        let asked = launcher.join().unwrap();
        assert_eq!(asked[0], "cmd=put kvsname=kvs_1 key=k0 value=1\n");
        assert_eq!(asked[2], "cmd=get kvsname=kvs_1 key=k9\n");
        // The launcher is gone.
        assert_eq!(store.has("k0"), None);
    }

    /// Slurm applies the protocol version of the first request to all later ones.
    #[test]
    fn launchers_other_than_hydra_are_not_asked() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let socket = here.as_raw_fd().to_string();
        let of_slurm = |name: &str| match name {
            "PMI_FD" => Some(socket.clone()),
            "PMI_RANK" => Some("0".to_owned()),
            "PMI_SIZE" => Some("2".to_owned()),
            _ => None,
        };
        assert!(Store::of(of_slurm).is_none());
        there.set_nonblocking(true).unwrap();
        let nothing = there.read(&mut [0; 8]).unwrap_err();
        assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
        let answers = "cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=kvs_7\n";
        let launcher = std::thread::spawn(move || {
            there.set_nonblocking(false).unwrap();
            let mut questions = BufReader::new(there.try_clone().unwrap());
            for answer in answers.split_inclusive('\n') {
                questions.read_line(&mut String::new()).unwrap();
                there.write_all(answer.as_bytes()).unwrap();
            }
        });
        let of_hydra = |name: &str| of_slurm(name).or((name == OF_HYDRA).then(|| "2".to_owned()));
        let store = Store::of(of_hydra).expect("a store");
        assert_eq!((store.rank, store.name.as_str()), (0, "kvs_7"));
        launcher.join().unwrap();
    }

    #[test]
    fn late_answers_are_waited_for() {
        let (here, mut there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let launcher = std::thread::spawn(move || {
            let mut line = String::new();
            let mut questions = BufReader::new(there.try_clone().unwrap());
            questions.read_line(&mut line).unwrap();
            for part in ["cmd=get_result rc", "=0 msg=success", " value=1\n"] {
                std::thread::sleep(std::time::Duration::from_millis(20));
                there.write_all(part.as_bytes()).unwrap();
            }
        });
        let store = Store {
            socket: here.as_raw_fd(),
            name: "kvs_1".into(),
            rank: 0,
        };
        assert_eq!(store.has("k0"), Some(true));
        launcher.join().unwrap();
    }
}
