//! Samples of stretches of computation: unwound at the end of the stretch, and written with the
//! call that ends it.

use laggard_callpath::CallSite;
use laggard_trace::{Extension, MOMENT, Record};

use super::Stream;
use crate::call::{Call, guarded, uncancelled};
use crate::log;
use crate::sampling::{News, Sampler, Wanted};
use crate::thread;
use crate::threads::{self, Kept};

/// The samples of a location.
#[derive(Default)]
pub struct Samples {
    /// `None`: no more are taken.
    sampler: Option<Sampler>,
    /// Of stretches that no record tells of yet.
    pending: Taken,
    /// Of the stretch before the looks that are not in the trace yet.
    before_looks: Taken,
    /// How many were in code that belongs to no file.
    nowhere: u64,
    /// How many are in the trace.
    told: u64,
}

/// Samples that are not in the trace yet.
#[derive(Default)]
struct Taken {
    /// By call path: ticks that they stand for.
    sums: Vec<(u32, u64)>,
    /// Call path and time of each.
    moments: Vec<(u32, u64)>,
}

impl Taken {
    fn add(&mut self, (path, time): (u32, u64), ticks: u64) {
        match self.sums.iter_mut().find(|(known, _)| *known == path) {
            Some((_, sum)) => *sum = sum.saturating_add(ticks),
            None => self.sums.push((path, ticks)),
        }
        self.moments.push((path, time));
    }

    fn append(&mut self, other: &mut Taken) {
        self.sums.append(&mut other.sums);
        self.moments.append(&mut other.moments);
    }
}

impl Samples {
    /// What is pending belongs to the looks that begin.
    fn begin_looks(&mut self) {
        self.before_looks.append(&mut self.pending);
    }
}

/// As extension records of a call that was entered then: in the order of call paths, then of time.
fn records(samples: &mut Taken, enter: u64, to: &mut Vec<Record>) {
    samples.sums.sort_unstable();
    for (path, ticks) in samples.sums.drain(..) {
        to.extend(Record::of_ticks(Extension::Sampled, path, ticks));
    }
    for (path, time) in samples.moments.drain(..) {
        let before = enter.saturating_sub(time) / MOMENT;
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        to.push(Record::extension(Extension::SampledAt, path, before));
    }
}

/// A library may be unloaded by the calling thread: its samples so far are unwound while they can be.
pub fn before_unload(site: CallSite) {
    if !thread::is_recording() || thread::own_number().is_none() {
        return;
    }
    let unwind = || {
        let Some(mut call) = Call::begin(site, 0) else {
            return;
        };
        if call.claim() {
            let stream = call.stream();
            if stream.samples.is_some() {
                stream.take_samples(stream.stretches.left());
            }
        }
        call.finish();
    };
    // SAFETY: the calling thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    uncancelled(|| guarded(unwind));
    // SAFETY: as above.
    unsafe { *errno = before };
}

impl Stream {
    /// Begins to sample the calling thread, and says in the trace how.
    pub(super) fn begin_samples(&mut self, wanted: Wanted) {
        let hz = ("sample_hz", wanted.hz.to_string().into_bytes());
        // One since the thread began has samples of the stretch since then.
        let since_birth = threads::sampler().map(|sampler| (sampler, News::none()));
        let from_now = || Sampler::start(wanted).map(Sampler::cleared);
        match since_birth.map_or_else(from_now, Ok) {
            Ok((sampler, news)) => {
                self.stretches.news = news;
                let way = sampler.way().as_bytes().to_vec();
                self.properties(&[hz, ("sampled_by", way)]);
                let samples = self.samples.get_or_insert_with(Box::default);
                samples.sampler = Some(sampler);
            }
            Err(error) => {
                log::debug!("no samples are taken: {error}");
                self.properties(&[hz, ("not_sampled", error.to_string().into_bytes())]);
            }
        }
    }

    /// Forgets the samples of a stretch before a call without a record.
    pub(super) fn drop_samples(&mut self) {
        if let Some(samples) = self
            .samples
            .as_deref_mut()
            .filter(|s| !s.pending.sums.is_empty())
        {
            samples.pending = Taken::default();
        }
    }

    /// Takes the samples of the stretch that ends now and began at `since`.
    pub(super) fn take_samples(&mut self, since: u64) {
        let samples = self.unwind_samples(since);
        self.add_pending(&samples);
    }

    /// Each sample since then: call path, time, and ticks that it stands for.
    fn unwind_samples(&mut self, since: u64) -> Vec<((u32, u64), u64)> {
        let mut taken = Vec::new();
        let Some(Samples {
            sampler: Some(sampler),
            nowhere,
            ..
        }) = self.samples.as_deref_mut()
        else {
            return taken;
        };
        let (tracer, depth) = (&mut self.tracer, self.depth.max(1));
        let (teams, around) = (&mut self.teams, self.around);
        self.stretches.news = sampler.take(since, |sample, ticks| {
            let moment = sample.moment();
            // The program did not compute there.
            if threads::is_own(moment.pc) {
                return;
            }
            let path = tracer.capture_moment(&moment, depth);
            *nowhere += u64::from(path.0 == 0);
            let path = teams.path_around(tracer, (path, around), depth);
            taken.push(((path.0, sample.time), ticks));
        });
        if tracer.has_new() {
            self.define_paths();
        }
        taken
    }

    /// These are of the stretch that the next record ends.
    fn add_pending(&mut self, samples: &[((u32, u64), u64)]) {
        if let Some(of) = self.samples.as_mut().filter(|_| !samples.is_empty()) {
            let add = |(sample, ticks): &_| of.pending.add(*sample, *ticks);
            samples.iter().for_each(add);
            self.stretches.pending = 1;
        }
    }

    /// Records what the thread did before it was a location, in order of time.
    pub fn tell_early(&mut self, calls: &[Kept]) {
        let samples = self.unwind_samples(self.stretches.left());
        let mut samples = &samples[..];
        for call in calls {
            let (enter, leave) = call.times;
            let before = samples.partition_point(|((_, time), _)| *time < enter);
            self.add_pending(&samples[..before]);
            samples = &samples[before..];
            self.stretches.was_in(call.times, call.used);
            let (raw, key) = call.raw(self);
            self.record_keyed(&raw, key, (enter, leave));
        }
        self.add_pending(samples);
    }

    /// A call with these times returned that took long: its samples are of no stretch.
    #[cold]
    #[inline(never)]
    pub(super) fn returned_late(&mut self, enter: u64, leave: u64) {
        if let Some(sampler) = self.samples.as_mut().and_then(|s| s.sampler.as_mut()) {
            // The program looks at `errno` after a call.
            // SAFETY: the calling thread's errno.
            unsafe {
                let errno = libc::__errno_location();
                let before = *errno;
                self.stretches.news = sampler.clear();
                *errno = before;
            }
        }
        self.stretches.begin_after(enter, leave);
        self.look_at_wishes(leave);
        self.tell_profile(leave);
    }

    /// Looks that are not in the trace yet begin.
    pub(super) fn samples_before_looks(&mut self) {
        if let Some(samples) = &mut self.samples {
            samples.begin_looks();
        }
    }

    /// The samples before the looks, entered then, that go into the trace now.
    pub(super) fn add_samples_before_looks(&mut self, enter: u64, to: &mut Vec<Record>) {
        if let Some(samples) = &mut self.samples {
            samples.told += samples.before_looks.moments.len() as u64;
            records(&mut samples.before_looks, enter, to);
        }
    }

    /// The samples before the call, entered then, that goes into the trace now.
    pub(super) fn add_samples(&mut self, enter: u64, to: &mut Vec<Record>) {
        if let Some(samples) = &mut self.samples {
            samples.told += samples.pending.moments.len() as u64;
            records(&mut samples.pending, enter, to);
        }
    }

    /// Takes no more samples, and says what became of them.
    pub(super) fn stop_samples(&mut self) {
        self.stretches.news = News::none();
        let sampler = self.samples.as_mut().and_then(|s| s.sampler.take());
        let lost = sampler.as_ref().map_or(0, Sampler::lost);
        let number = |number: u64| number.to_string().into_bytes();
        let samples = self.samples.as_mut();
        let (told, nowhere) = samples.map_or((0, 0), |samples| {
            (
                std::mem::take(&mut samples.told),
                std::mem::take(&mut samples.nowhere),
            )
        });
        // Some may have been pending when the sampler was stopped.
        if sampler.is_none() && told == 0 {
            return;
        }
        self.properties(&[("samples", number(told))]);
        // One of many may be anywhere.
        for (key, count, least) in [
            ("samples_lost", lost, 1),
            ("samples_nowhere", nowhere, 1 + told / 100),
        ] {
            if count >= least {
                self.properties(&[(key, number(count))]);
            }
        }
    }
}
