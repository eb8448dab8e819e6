//! Several hosts on one machine, for effects that need several.
//!
//! A host is a set of namespaces: its own network, name, mounts and processes, and optionally its
//! own `CLOCK_MONOTONIC`. A further host, `login`, has a bridge to which all are wired. `mpirun`
//! runs there, and starts its daemons on the hosts with a script instead of ssh. All hosts share
//! the file systems. Nothing has a name outside of these namespaces. Each ends with its holder
//! process, which ends with the test, even if the test is killed: nothing is left.
//!
//! ```text
//! login ── bridge ─┬─ port1 ══ eth0 node1: orted, ranks        ══ a virtual cable, which can be
//! (mpirun)         └─ port2 ══ eth0 node2: orted, ranks           given a delay in each direction
//! ```

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::cable::Cable;
use crate::mpi::Mpi;

/// The plan of a host.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// Seconds that its `CLOCK_MONOTONIC` is ahead of the machine's; `None`: the same clock.
    pub ahead_s: Option<u32>,
    /// Whether the collector uses `CLOCK_MONOTONIC` as its clock, not the processor's counter.
    pub monotonic: bool,
}

impl Plan {
    /// Plans a host with the machine's clocks.
    pub fn new(name: &'static str) -> Plan {
        Plan {
            name,
            ahead_s: None,
            monotonic: false,
        }
    }

    /// With a `CLOCK_MONOTONIC` that is ahead.
    pub fn ahead(self, seconds: u32) -> Plan {
        Plan {
            ahead_s: Some(seconds),
            ..self
        }
    }

    /// Recorded with `CLOCK_MONOTONIC`.
    pub fn monotonic(self) -> Plan {
        Plan {
            monotonic: true,
            ..self
        }
    }
}

/// Wiring of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wires {
    /// Without delay.
    Fast,
    /// With adjustable delays: by the kernel (`tc netem`) if it can, else by [`Cable`].
    Delayed,
}

/// Hosts that exist.
pub struct Hosts {
    nodes: Vec<Node>,
    login: Holder,
    dir: PathBuf,
}

struct Node {
    name: &'static str,
    holder: Holder,
    wire: Wire,
}

enum Wire {
    Plain,
    Netem,
    Cable(Cable),
}

/// The process that holds a host's namespaces.
struct Holder {
    child: Child,
    /// The first process in them, as seen from here.
    pid: u32,
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end; returns its output, or its error message.
fn done(command: &mut Command) -> Result<String, String> {
    let text = || format!("{command:?}");
    let text = text();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{text}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{text}: {}", said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("hosts")
        .join(name)
}

impl Holder {
    /// Makes the namespaces in `unshare`.
    fn new(unshare: &[&str], name: &str, files: &[&Path]) -> Result<Holder, String> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--uts", "--mount", "--fork", "--kill-child"]);
        command.args(unshare).arg(script("host.sh")).arg(name);
        command.args(files);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::piped()).spawn();
        let child = child.map_err(|error| format!("{command:?}: {error}"))?;
        let mut holder = Holder { child, pid: 0 };
        let mut line = String::new();
        if let Some(output) = holder.child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        if line.trim() != "ready" {
            let mut said = String::new();
            if let Some(mut errors) = holder.child.stderr.take() {
                let _ = errors.read_to_string(&mut said);
            }
            return Err(format!("{command:?}: {}", said.trim()));
        }
        let parent = holder.child.id();
        let children = format!("/proc/{parent}/task/{parent}/children");
        let children = fs::read_to_string(&children).map_err(|e| format!("{children}: {e}"))?;
        let pid = children.trim().parse();
        holder.pid = pid.map_err(|_| format!("children {children:?} of a namespace's holder"))?;
        Ok(holder)
    }

    /// A command in the network of the host.
    fn network(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid.to_string(), "--net", "--"]);
        done(command.args(words))
    }
}

impl Hosts {
    /// Makes hosts for a test. If this machine cannot, prints why on stderr and returns `None`.
    ///
    /// # Panics
    /// If namespaces fail although this user has all rights on the machine.
    pub fn new(test: &Path, plans: &[Plan], wires: Wires) -> Option<Hosts> {
        match Hosts::try_new(&test.join("hosts"), plans, wires) {
            Ok(hosts) => Some(hosts),
            Err(why) => {
                let needs_more =
                    wires == Wires::Delayed || plans.iter().any(|p| p.ahead_s.is_some());
                assert!(needs_more || !is_all_powerful(), "no hosts: {why}");
                // Written directly: the output of macros is hidden if the test passes.
                let words = format!("SKIPPED, no such hosts on this machine: {why}\n");
                let _ = std::io::stderr().write_all(words.as_bytes());
                None
            }
        }
    }

    fn try_new(dir: &Path, plans: &[Plan], wires: Wires) -> Result<Hosts, String> {
        let file = |name: &str, text: &str| {
            let path = dir.join(name);
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok::<_, String>(path)
        };
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut names = "127.0.0.1 localhost\n10.77.0.254 login\n".to_owned();
        for (number, plan) in (1..).zip(plans) {
            names.push_str(&format!("10.77.0.{number} {}\n", plan.name));
        }
        let names = file("names", &names)?;
        let clock_source = file("clock-source", "other\n")?;
        let login = Holder::new(&[], "login", &[&names])?;
        login.network(&["ip", "link", "add", "br0", "type", "bridge"])?;
        login.network(&["ip", "address", "add", "10.77.0.254/24", "dev", "br0"])?;
        login.network(&["ip", "link", "set", "br0", "up"])?;
        let mut hosts = Hosts {
            nodes: Vec::new(),
            login,
            dir: dir.to_owned(),
        };
        for (number, plan) in (1..).zip(plans) {
            let ahead = plan.ahead_s.map(|seconds| seconds.to_string());
            let mut unshare = vec!["--pid", "--mount-proc"];
            if let Some(ahead) = &ahead {
                unshare.extend(["--time", "--monotonic", ahead]);
            }
            let mut files: Vec<&Path> = vec![&names];
            files.extend(plan.monotonic.then_some(&*clock_source));
            let holder = Holder::new(&unshare, plan.name, &files)?;
            let wire = hosts.wire(&holder, number, wires)?;
            file(&format!("{}.pid", plan.name), &format!("{}\n", holder.pid))?;
            hosts.nodes.push(Node {
                name: plan.name,
                holder,
                wire,
            });
        }
        Ok(hosts)
    }

    /// Wires a host to the bridge.
    fn wire(&self, host: &Holder, number: usize, wires: Wires) -> Result<Wire, String> {
        let (port, pid) = (format!("port{number}"), host.pid.to_string());
        let wire = if wires == Wires::Delayed && !has_netem(&self.login) {
            let cable = Cable::new((host.pid, "eth0"), (self.login.pid, &port));
            Wire::Cable(cable.map_err(|e| format!("neither tc netem nor /dev/net/tun: {e}"))?)
        } else {
            let mut words = vec!["ip", "link", "add", &port, "type", "veth"];
            words.extend(["peer", "name", "eth0", "netns", &pid]);
            self.login.network(&words)?;
            match wires {
                Wires::Fast => Wire::Plain,
                Wires::Delayed => Wire::Netem,
            }
        };
        let login = |words: &[&str]| self.login.network(words);
        login(&["ip", "link", "set", &port, "master", "br0", "up"])?;
        let address = format!("10.77.0.{number}/24");
        host.network(&["ip", "address", "add", &address, "dev", "eth0"])?;
        host.network(&["ip", "link", "set", "eth0", "up"])?;
        Ok(wire)
    }

    /// From now on, packets to and from a host take this long.
    ///
    /// # Panics
    /// If there is no such host, or its wire has no delay.
    pub fn delay(&self, name: &str, to: Duration, from: Duration) {
        let number = self.number(name);
        let node = &self.nodes[number];
        match &node.wire {
            Wire::Plain => panic!("the wire of {name} has no delay"),
            Wire::Cable(cable) => cable.delay(from, to),
            Wire::Netem => {
                let port = format!("port{}", number + 1);
                let ends = [(&node.holder, "eth0", from), (&self.login, &port, to)];
                for (end, device, by) in ends {
                    let by = format!("{}us", by.as_micros());
                    let mut words = vec!["tc", "qdisc", "replace", "dev", device];
                    words.extend(["root", "netem", "delay", &by, "limit", "100000"]);
                    end.network(&words).expect("a delay");
                }
            }
        }
    }

    fn number(&self, name: &str) -> usize {
        let found = self.nodes.iter().position(|node| node.name == name);
        found.unwrap_or_else(|| panic!("no host {name}"))
    }

    /// Bytes that a host has received over the network.
    ///
    /// # Panics
    /// If there is no such host, or its kernel does not tell.
    pub fn received(&self, name: &str) -> u64 {
        self.counted(name, 0)
    }

    /// Packets that a host has received over the network.
    ///
    /// # Panics
    /// As [`received`](Self::received).
    pub fn packets(&self, name: &str) -> u64 {
        self.counted(name, 1)
    }

    /// A column of what a host's kernel tells of its device.
    fn counted(&self, name: &str, column: usize) -> u64 {
        let pid = self.nodes[self.number(name)].holder.pid;
        let text = fs::read_to_string(format!("/proc/{pid}/net/dev")).expect("its devices");
        let lines = text.lines().map(|line| line.trim());
        let mut device = lines.filter_map(|line| line.strip_prefix("eth0:"));
        let first = device
            .next()
            .and_then(|line| line.split_whitespace().nth(column));
        first.and_then(|count| count.parse().ok()).expect("a count")
    }

    /// A command on a host, or on `login`, with this name.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn on(&self, name: &str, program: &Path) -> Command {
        let (pid, more) = match name {
            "login" => (self.login.pid, &[][..]),
            name => (self.nodes[self.number(name)].holder.pid, &["--pid"][..]),
        };
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid.to_string()]);
        command.args(["--net", "--uts", "--mount"]).args(more);
        command.arg("--").arg(program);
        command
    }

    /// `mpirun` on the login host, for ranks on all hosts, the first ones on the first.
    pub fn mpirun(&self, ranks: u32) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.login.pid.to_string()]);
        command.args(["--net", "--uts", "--mount", "--"]);
        let usual = Mpi::chosen().mpirun(ranks);
        command.arg(usual.get_program()).args(usual.get_args());
        let slots = (ranks as usize).div_ceil(self.nodes.len());
        let hosts = self.nodes.iter().map(|n| format!("{}:{slots}", n.name));
        command
            .arg("--host")
            .arg(hosts.collect::<Vec<_>>().join(","));
        command.env("TEST_HOSTS", &self.dir);
        command
            .args(["--mca", "plm_rsh_agent"])
            .arg(script("agent.sh"));
        for (key, value) in [
            ("plm_rsh_no_tree_spawn", "1"),
            ("oob_tcp_if_include", "eth0,br0"),
            ("btl", "self,vader,tcp"),
            ("btl_tcp_if_include", "eth0"),
        ] {
            command.args(["--mca", key, value]);
        }
        command
    }
}

fn has_netem(host: &Holder) -> bool {
    let words = [
        "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1us",
    ];
    let can = host.network(&words).is_ok();
    can && host
        .network(&["tc", "qdisc", "del", "dev", "lo", "root"])
        .is_ok()
}

/// Whether this process has all rights on this machine.
fn is_all_powerful() -> bool {
    const CAP_SYS_ADMIN: u64 = 1 << 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & CAP_SYS_ADMIN != 0)
}
