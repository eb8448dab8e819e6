//! Eager limits: the largest messages that are sent without waiting for their receive.

use crate::input::open::Opened;

/// An eager limit and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct EagerLimit {
    /// Largest eager message, bytes.
    pub bytes: f64,
    /// Its source, for people.
    pub source: String,
}

/// The eager limit of a run, if known.
pub fn limit_of(opened: &Opened) -> Option<EagerLimit> {
    let run = &opened.run;
    let library = Library {
        name: run.mpi_library.as_deref().unwrap_or_default(),
        device: &run.mpi_device,
        settings: &run.settings,
        hosts: opened.host_names.len(),
    };
    library.eager_limit()
}

/// Default of Open MPI on one host: `btl_vader_eager_limit`, in version 5 `btl_sm_eager_limit`.
const OPEN_MPI: f64 = 4096.0;
/// Default of Open MPI over TCP: `btl_tcp_eager_limit`.
const OPEN_MPI_TCP: f64 = 65536.0;
/// Default of UCX in shared memory: the size of a segment (`UCX_POSIX_SEG_SIZE` and
/// `UCX_SYSV_SEG_SIZE`), less one.
const UCX: f64 = 8255.0;

/// The MPI library of a run, as recorded.
struct Library<'r> {
    /// Name and version.
    pub name: &'r str,
    /// Device that it was built for (MPICH only).
    pub device: &'r str,
    /// Settings in the environment: `NAME=value`.
    pub settings: &'r [String],
    /// Number of hosts of the run.
    pub hosts: usize,
}

impl Library<'_> {
    /// The eager limit between two ranks, if known.
    fn eager_limit(&self) -> Option<EagerLimit> {
        if self.name.starts_with("Open MPI") {
            return self.of_open_mpi();
        }
        let is_known = self.name.starts_with("MPICH") && self.device.contains("ucx");
        is_known.then(|| self.of_ucx())?
    }

    fn of_open_mpi(&self) -> Option<EagerLimit> {
        // With another `pml` component, the btl_… settings do not matter.
        match self.setting("OMPI_MCA_pml") {
            None | Some("ob1") => {}
            Some("ucx") => return self.of_ucx(),
            Some(_) => return None,
        }
        let shared = ["vader", "sm"];
        let uses = |names: &[&str]| match self.setting("OMPI_MCA_btl") {
            None => true,
            Some(list) => match list.strip_prefix('^') {
                Some(without) => !names.iter().all(|name| is_in(without, name)),
                None => names.iter().any(|name| is_in(list, name)),
            },
        };
        if self.hosts == 1 && uses(&shared[..1]) | uses(&shared[1..]) {
            let names = [
                "OMPI_MCA_btl_vader_eager_limit",
                "OMPI_MCA_btl_sm_eager_limit",
            ];
            return self.set_or(&names, OPEN_MPI, "the default of Open MPI on one host");
        }
        let names = ["OMPI_MCA_btl_tcp_eager_limit"];
        let default = "the default of Open MPI over TCP";
        uses(&["tcp"]).then(|| self.set_or(&names, OPEN_MPI_TCP, default))?
    }

    fn of_ucx(&self) -> Option<EagerLimit> {
        let name = "UCX_RNDV_THRESH";
        match self.setting(name).filter(|value| *value != "auto") {
            // Messages of this size already wait.
            Some(value) => Some(EagerLimit {
                bytes: bytes(value)? - 1.0,
                source: format!("as {name} says"),
            }),
            None if self.hosts == 1 => Some(EagerLimit {
                bytes: UCX,
                source: "the default of UCX on one host".to_owned(),
            }),
            None => None,
        }
    }

    /// The value of the first of these settings that is set, else the default.
    fn set_or(&self, names: &[&str], default: f64, what: &str) -> Option<EagerLimit> {
        let set = names
            .iter()
            .find_map(|name| Some((name, self.setting(name)?)));
        Some(match set {
            Some((name, value)) => EagerLimit {
                bytes: bytes(value)?,
                source: format!("as {name} says"),
            },
            None => EagerLimit {
                bytes: default,
                source: what.to_owned(),
            },
        })
    }

    fn setting(&self, name: &str) -> Option<&str> {
        let mut settings = self.settings.iter();
        settings.find_map(|text| text.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Whether a word is in a comma-separated list.
fn is_in(list: &str, word: &str) -> bool {
    list.split(',').any(|item| item.trim() == word)
}

/// A number of bytes in the format of Open MPI and UCX: `65536`, `64k`, `64KB`.
fn bytes(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor = match unit {
        "" | "b" => 1u64,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(factor).map(|bytes| bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(name: &str, device: &str, settings: &[&str], hosts: usize) -> Option<f64> {
        let settings: Vec<String> = settings.iter().map(|&text| text.to_owned()).collect();
        let library = Library {
            name,
            device,
            settings: &settings,
            hosts,
        };
        library.eager_limit().map(|limit| limit.bytes)
    }

    #[test]
    fn open_mpi_says_it_for_what_it_uses() {
        let of = |settings: &[&str], hosts| limit("Open MPI v4.1.4", "", settings, hosts);
        assert_eq!(of(&[], 1), Some(4096.0));
        assert_eq!(of(&[], 2), Some(65536.0));
        let shared = "OMPI_MCA_btl_vader_eager_limit=10000";
        assert_eq!(of(&[shared], 1), Some(10000.0));
        assert_eq!(of(&[shared], 2), Some(65536.0));
        let over_tcp = ["OMPI_MCA_btl=self,tcp", "OMPI_MCA_btl_tcp_eager_limit=32k"];
        assert_eq!(of(&over_tcp, 1), Some(32768.0));
        assert_eq!(of(&["OMPI_MCA_btl=^vader,sm"], 1), Some(65536.0));
        assert_eq!(of(&["OMPI_MCA_btl=^openib"], 1), Some(4096.0));
        assert_eq!(of(&["OMPI_MCA_btl=self,openib"], 2), None);
        assert_eq!(of(&["OMPI_MCA_btl_vader_eager_limit=much"], 1), None);
        assert_eq!(of(&["OMPI_MCA_pml=cm"], 1), None);
        let by_ucx = ["OMPI_MCA_pml=ucx", "UCX_RNDV_THRESH=16K"];
        assert_eq!(of(&by_ucx, 2), Some(16383.0));
    }

    #[test]
    fn mpich_says_it_where_it_stands_on_ucx() {
        let of =
            |device, settings: &[&str], hosts| limit("MPICH Version: 4", device, settings, hosts);
        assert_eq!(of("ch4:ucx", &[], 1), Some(8255.0));
        assert_eq!(of("ch4:ucx", &["UCX_RNDV_THRESH=auto"], 1), Some(8255.0));
        assert_eq!(of("ch4:ucx", &[], 2), None);
        assert_eq!(of("ch4:ucx", &["UCX_RNDV_THRESH=3000"], 2), Some(2999.0));
        assert_eq!(of("ch4:ucx", &["UCX_RNDV_THRESH=inf"], 1), None);
        assert_eq!(of("ch4:ofi", &["UCX_RNDV_THRESH=3000"], 1), None);
        assert_eq!(limit("", "", &[], 1), None);
    }
}
