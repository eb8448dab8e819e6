//! End-to-end tests. Real MPI programs with injected delays are recorded with the collector and
//! analysed with one, two and three agents. The reports are compared with directives in the
//! programs' sources.
//!
//! ```text
//! programs/NAME.c ─ mpicc ─> program ─ mpirun ───────────────────> output ┐ equal?
//!                               └───── mpirun, LD_PRELOAD ─> trace  output ┘
//!                                                              └ analyses by 1, 2, 3 agents ─ equal?
//!                                                                   ├ report.json ─ as the source expects?
//!                              laggard export --to otf2, analyze ─────┴ report.json ─ the same?
//! ```
//!
//! The modules:
//!
//! - [`directives`] reads expectations from a source, [`report`] is a typed view of `report.json`,
//!   [`expectations`] compares the two;
//! - [`check`] is the whole procedure for one program, [`recorded`] parts of it for other tests;
//! - [`round_trip`] compares findings of a trace with those of its archive, [`dump`] computes some
//!   of a report anew from the calls, [`replayed`] compares a run with its replay, [`conserved`]
//!   adds root causes up;
//! - [`agents`] compares analyses by several agents without a launcher;
//! - [`threads`] is what tests of programs with several threads look at;
//! - [`process`] runs commands that cannot hang, [`attempts`] repeats tests that a busy machine
//!   disturbed;
//! - [`mpi`] knows compilers and launchers of Open MPI and MPICH, [`product`] the collector and the
//!   command;
//! - [`hosts`] makes several hosts of this machine with [`cable`]s between them, [`moved`] gives a
//!   trace other clocks or hosts.
//!
//! # Expectations in the sources
//!
//! They stand in comments, so that line numbers cannot drift from the code. A directive alone in
//! its comment line is about the run; one after code is about that line. Fields are `key=value`,
//! values with blanks in double quotes; a comment line that begins with a `key=` continues the
//! directive above it.
//!
//! ```text
//! RUN np=2 [args="…"] [env="K=V …"] [cflags="…"] [libs="…"] [link=lib/x.c]
//!     How the program is built and started, linked with a library made of that source
//!     before the others. Required, once.
//! MARK name
//!     Names the line it stands on; used as @name.
//! EXPECT pattern[+pattern…] severity=S [at=@mark] [via=@mark] [operation=MPI_Recv] [function=f]
//!        [ranks=1,2 | ranks=1:0.3,2:0.1] [instances=N] [cause_rank=0[,3] | cause_rank=0:0.2,3:0.1]
//!        [cause_line=@mark] [cause_operation=MPI_Send] [because="text"] [tolerance=0.1] [abs=0]
//!     The bottlenecks that fit pattern, at, via (a line anywhere on the call path),
//!     operation and function together have this severity in seconds. `ranks` are all
//!     ranks that lose time there, with their own shares if given. `cause_rank` are all
//!     ranks that cause it, with their shares if given. All of their causes have the given
//!     line and operation, and one has an explanation that contains `because`.
//! SILENT pattern[+pattern…] [at=@mark] [via=@mark] [below=0.010]
//!     The total of the pattern, or of its bottlenecks there, stays below this, in seconds.
//! METRIC pattern[+pattern…] S [instances=N] [tolerance=0.1] [abs=0]
//!     The total over the run.
//! ROOT activity ranks=0:0.9[,1:0.3] [at=@mark] [tolerance=0.1]
//!     Root causes of this activity at this call, or before it if it is between two: all
//!     ranks with a part that counts, and the waiting that each of them starts.
//! NO_ROOT [ranks=1,2] [at=@mark] [below=0.05]
//!     These ranks together, or all there, start less than this fraction of all waiting.
//! ANOMALY id count=N [detail="text"]
//!     The report has this anomaly; it has no other one above the severity "info".
//! LOCATIONS N
//!     Number of threads of ranks that were recorded.
//! SAYS text="text"
//!     The report's text contains this.
//! NOT_WITH mpich|openmpi because="…"
//!     The program is not run with this MPI, since something is missing or broken.
//! ```
//!
//! A severity fits within `tolerance` (a fraction) plus `abs` (seconds) per instance. If only times
//! are off, the run is repeated with longer delays, see [`attempts`]. Results that do not depend on
//! time must be right at once, unless something else used the machine meanwhile.

pub mod agents;
pub mod archive;
pub mod attack;
pub mod attempts;
pub mod browser;
pub mod cable;
pub mod check;
pub mod conserved;
pub mod directives;
pub mod dump;
pub mod expectations;
pub mod folders;
pub mod hosts;
pub mod moved;
pub mod mpi;
pub mod process;
pub mod product;
pub mod recorded;
pub mod replayed;
pub mod report;
pub mod round_trip;
pub mod served;
pub mod threads;
pub mod tour;
