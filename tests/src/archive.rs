//! OTF2 archives as Score-P would write them, with times known to the nanosecond.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::product::{Bench, TIMEOUT, python};

/// A call of a rank: name, enter and leave, and the events in between, in the words of
/// `otf2/write.py`.
pub type Call<'a> = (u32, &'a str, (u64, u64), &'a [&'a str]);

/// The description of an archive.
#[derive(Clone, Debug)]
pub struct Archive {
    text: String,
    ranks: u32,
}

impl Archive {
    /// An empty archive of `ranks` ranks.
    pub fn new(ranks: u32) -> Archive {
        let text = format!("ranks {ranks}\n");
        Archive { text, ranks }
    }

    /// Adds a line.
    pub fn line(&mut self, line: &str) -> &mut Self {
        self.text.push_str(line);
        self.text.push('\n');
        self
    }

    /// An event of a location.
    pub fn event(&mut self, location: u32, time: u64, what: &str) -> &mut Self {
        writeln!(self.text, "{location} {time} {what}").expect("a string");
        self
    }

    /// A call; the events in it happen at its end.
    pub fn call(&mut self, (rank, name, (enter, leave), inside): Call<'_>) -> &mut Self {
        self.event(rank, enter, &format!("enter {name}"));
        for what in inside {
            self.event(rank, leave, what);
        }
        self.event(rank, leave, &format!("leave {name}"))
    }

    /// All ranks are in the function `name`, at line `line`, from `base` to `end`, and make these
    /// calls. Their times are in µs since `base`.
    pub fn function(&mut self, name: &str, line: u32, base: u64, end: u64, calls: &[Call<'_>]) {
        self.line(&format!("region {name} app.c {line}"));
        for rank in 0..self.ranks {
            self.event(rank, base, &format!("enter {name}"));
            for &(_, call, (enter, leave), inside) in calls.iter().filter(|c| c.0 == rank) {
                let times = (base + enter * 1_000, base + leave * 1_000);
                self.call((rank, call, times, inside));
            }
            self.event(rank, end, &format!("leave {name}"));
        }
    }

    /// Writes the archive into a directory of the test; returns its anchor file.
    ///
    /// # Panics
    /// If the description makes no sense.
    pub fn write(&self, bench: &Bench, name: &str) -> PathBuf {
        let description = bench.path(&format!("{name}.txt"));
        std::fs::write(&description, &self.text).expect("a description");
        let directory = bench.path(name);
        let mut command = Command::new(python());
        command.arg(script()).arg(&directory).arg(&description);
        process::run(&mut command, TIMEOUT, &bench.path("write")).expect_success();
        directory.join("traces.otf2")
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("otf2/write.py")
}
