//! `laggard dump`: the calls of a trace, one line each.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use laggard_engine::events::{Among, Calls, InRegion, Item, Regions, region_name};
use laggard_engine::events::{Trace, TracedLocation};
use laggard_engine::symbols::{Symbols, base_name, source_location};
use laggard_files::printable;
use laggard_report::rank_ranges;
use laggard_trace::calls::{
    self,
    user::{REGION, STEER},
};
use laggard_trace::{Change, Event, Signature, flags};

use super::call_text::{self, Posts};
use super::{screen, traces};
use crate::cli::Dump;

/// Prints calls in the order in which they returned, location by location. Nothing is
/// kept: memory does not grow with the trace.
pub fn dump(options: &Dump) -> Result<ExitCode> {
    let directory = traces::meant(options.directory.as_deref())?;
    if options.to.is_some() {
        screen::say("--to is called --until now");
    }
    let trace = Trace::open(&directory)?;
    let wanted = wanted(&trace, &directory, options)?;
    let mut symbols = Symbols::new();
    let mut out = screen::output();
    writeln!(
        out,
        "# rank/thread  enter, s  duration, µs  call  what  where"
    )?;
    for traced in wanted {
        Listing::new(traced, options, &mut symbols).write(&mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The locations that were asked for; an error if there are none.
fn wanted<'t>(
    trace: &'t Trace,
    directory: &Path,
    options: &Dump,
) -> Result<Vec<&'t TracedLocation>> {
    let number = |traced: &TracedLocation| {
        let header = &traced.location.header;
        (header.rank, header.thread)
    };
    let is_wanted = |rank| options.ranks.as_ref().is_none_or(|list| list.has(rank));
    let of_rank = |traced: &&TracedLocation| is_wanted(number(traced).0);
    let of_thread = |traced: &&TracedLocation| options.thread.is_none_or(|t| t == number(traced).1);
    let locations = &trace.locations;
    let wanted: Vec<_> = locations.iter().filter(of_rank).filter(of_thread).collect();
    if wanted.is_empty() {
        let directory = directory.display();
        let of_rank = || locations.iter().filter(of_rank);
        let ranks = rank_ranges(locations.iter().map(|traced| number(traced).0));
        let threads = rank_ranges(of_rank().map(|traced| number(traced).1));
        match (options.thread, of_rank().next()) {
            (_, None) => bail!("{directory}: no trace of such a rank, only of {ranks}"),
            (Some(thread), _) => bail!("{directory}: no thread {thread} there, only {threads}"),
            (None, Some(_)) => {}
        }
    }
    Ok(wanted)
}

/// The lines of one location.
struct Listing<'a> {
    traced: &'a TracedLocation,
    options: &'a Dump,
    symbols: &'a mut Symbols,
    /// Where, by call path; `None`: not resolved yet.
    places: Vec<Option<String>>,
    posts: Posts,
    regions: Regions,
    written: u64,
}

impl<'a> Listing<'a> {
    fn new(traced: &'a TracedLocation, options: &'a Dump, symbols: &'a mut Symbols) -> Self {
        Listing {
            traced,
            options,
            symbols,
            places: vec![None; traced.location.definitions.call_path_count()],
            posts: Posts::default(),
            regions: Regions::default(),
            written: 0,
        }
    }

    fn write(&mut self, out: &mut impl Write) -> Result<()> {
        let location = &self.traced.location;
        if location.chunks.is_empty() {
            let header = &location.header;
            writeln!(out, "# {}/{}: no records", header.rank, header.thread)?;
        }
        let mut result = Ok(());
        Calls::new(location).read(|item| match self.item(out, item) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                result = Err(error);
                ControlFlow::Break(())
            }
        });
        result
    }

    /// Writes what is to be said of a call; `false` once the limit is reached.
    fn item(&mut self, out: &mut impl Write, item: Item) -> Result<bool> {
        let (event, signature) = match item {
            Item::Damaged(chunk) => {
                let (count, offset) = (chunk.count, chunk.offset);
                writeln!(out, "# {count} records at offset {offset} are damaged")?;
                return Ok(true);
            }
            _ if self
                .options
                .limit
                .is_some_and(|limit| self.written >= limit) =>
            {
                return Ok(false);
            }
            Item::Undefined(signature) => {
                writeln!(out, "# record with undefined signature {signature}")?;
                return Ok(true);
            }
            Item::Call(_, event, signature) => (event, signature),
        };
        let around = self.regions.around(signature, event);
        // A region in which calls were recorded says at its end how long it lasted.
        let is_region = signature.operation == REGION;
        let lasted = event.value.filter(|_| is_region).unwrap_or(0);
        let enter = self.traced.ns(event.enter.saturating_sub(lasted));
        let leave = self.traced.ns(event.leave);
        if self.is_in_time(enter, leave) {
            self.line(out, (event, signature, around), (enter, leave))?;
            self.written += 1;
        }
        self.posts.count(signature);
        Ok(true)
    }

    fn is_in_time(&self, enter: i64, leave: i64) -> bool {
        let ns = |seconds: f64| (seconds * 1e9) as i64;
        self.options.from.is_none_or(|from| leave >= ns(from))
            && self.options.until().is_none_or(|until| enter < ns(until))
    }

    fn line(
        &mut self,
        out: &mut impl Write,
        (event, signature, around): (&Event, &Signature, Option<InRegion>),
        (enter, leave): (i64, i64),
    ) -> Result<()> {
        let header = &self.traced.location.header;
        let definitions = &self.traced.location.definitions;
        write!(
            out,
            "{}/{} {} {:>12.3} {:<14}",
            header.rank,
            header.thread,
            call_text::seconds(enter),
            (leave - enter).max(0) as f64 / 1e3,
            calls::name(signature.operation)
        )?;
        match signature.operation {
            REGION => self.region(out, signature)?,
            STEER => match Change::of(signature.parameter) {
                Some(change) => write!(out, " {}", change.text())?,
                None => write!(out, " parameter={}", signature.parameter)?,
            },
            _ => {
                // Times before the call.
                let before = |ticks| self.traced.ns(event.enter.saturating_sub(ticks));
                let microseconds = |ticks| (before(0) - before(ticks)) as f64 / 1e3;
                call_text::write(
                    out,
                    event,
                    signature,
                    definitions,
                    &self.posts,
                    microseconds,
                )?
            }
        }
        // Waits of a team's threads tell of it themselves.
        let is_of_team = Among::of(signature, event).is_some_and(|among| among.team.is_some());
        if let Some(region) = around.filter(|_| !is_of_team) {
            let (team, threads, member) = (region.team, region.threads, region.member);
            let begin = call_text::word(self.place(region.call_path));
            write!(
                out,
                " team={team} threads={threads} member={member} in={begin}"
            )?;
        }
        if !signature.has(flags::PART) {
            writeln!(out, "  {}", self.place(signature.call_path))?;
        } else {
            writeln!(out)?;
        }
        Ok(())
    }

    /// What a region is called.
    fn region(&mut self, out: &mut impl Write, signature: &Signature) -> Result<()> {
        let definitions = &self.traced.location.definitions;
        let id = usize::try_from(signature.parameter).ok();
        let region = id.and_then(|id| definitions.regions().get(id));
        let name = region.and_then(|region| region_name(definitions, region, self.symbols));
        let name = name.unwrap_or_default();
        let name = call_text::word(&name);
        Ok(write!(out, " name={name}")?)
    }

    /// The line of the program that makes the call; empty if the path is not defined.
    fn place(&mut self, call_path: u32) -> &str {
        let definitions = &self.traced.location.definitions;
        let symbols = &mut *self.symbols;
        let Some(place) = self.places.get_mut(call_path as usize) else {
            return "";
        };
        place.get_or_insert_with(|| {
            let lines = symbols.resolve_call_path(definitions, call_path);
            let place = source_location(&lines);
            let text = match (place.file.as_str(), place.line) {
                ("", _) | (_, 0) => place.function,
                (file, line) => format!("{}:{line} {}", base_name(file), place.function),
            };
            printable(&text).into_owned()
        })
    }
}
