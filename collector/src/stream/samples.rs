//! Samples of stretches of computation: unwound at the end of the stretch, and written with the
//! call that ends it.

use laggard_trace::{Extension, MOMENT, Record};

use super::Stream;
use crate::log;
use crate::sampling::{Sampler, Wanted};

/// The samples of a location.
pub struct Samples {
    sampler: Sampler,
    /// Of stretches that no record tells of yet.
    pending: Taken,
    /// Of the stretch before the looks that are not in the trace yet.
    before_looks: Taken,
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
    fn add(&mut self, path: u32, ticks: u64) {
        match self.sums.iter_mut().find(|(known, _)| *known == path) {
            Some((_, sum)) => *sum = sum.saturating_add(ticks),
            None => self.sums.push((path, ticks)),
        }
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
    for (path, mut ticks) in samples.sums.drain(..) {
        while ticks > 0 {
            let part = u32::try_from(ticks).unwrap_or(u32::MAX);
            ticks -= u64::from(part);
            to.push(Record::extension(Extension::Sampled, path, part));
        }
    }
    for (path, time) in samples.moments.drain(..) {
        let before = enter.saturating_sub(time) / MOMENT;
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        to.push(Record::extension(Extension::SampledAt, path, before));
    }
}

impl Stream {
    /// Begins to sample the calling thread, and says in the trace how.
    pub(super) fn begin_samples(&mut self, wanted: Wanted) {
        let hz = ("sample_hz", wanted.hz.to_string().into_bytes());
        match Sampler::start(wanted) {
            Ok(sampler) => {
                let way = sampler.way().as_bytes().to_vec();
                self.properties(&[hz, ("sampled_by", way)]);
                self.samples = Some(Box::new(Samples {
                    sampler,
                    pending: Taken::default(),
                    before_looks: Taken::default(),
                }));
            }
            Err(error) => {
                log::debug!("no samples are taken: {error}");
                self.properties(&[hz, ("not_sampled", error.to_string().into_bytes())]);
            }
        }
    }

    /// Takes the samples of the stretch that ends now and began at `since`.
    pub(super) fn take_samples(&mut self, since: u64) {
        let Some(samples) = &mut self.samples else {
            return;
        };
        let (tracer, depth) = (&mut self.tracer, self.depth);
        let pending = &mut samples.pending;
        samples.sampler.take(since, |sample, ticks| {
            let path = tracer.capture_moment(&sample.moment(), depth.max(1));
            pending.add(path.0, ticks);
            pending.moments.push((path.0, sample.time));
        });
        if !pending.sums.is_empty() {
            self.stretches.pending = 1;
        }
        if tracer.has_new() {
            self.define_paths();
        }
    }

    /// A call with these times returned that took long: its samples are of no stretch.
    #[cold]
    #[inline(never)]
    pub(super) fn returned_late(&mut self, enter: u64, leave: u64) {
        if let Some(samples) = &mut self.samples {
            // The program looks at `errno` after a call.
            // SAFETY: the calling thread's errno.
            unsafe {
                let errno = libc::__errno_location();
                let before = *errno;
                samples.sampler.clear();
                *errno = before;
            }
        }
        self.stretches.begin_after(enter, leave);
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
            records(&mut samples.before_looks, enter, to);
        }
    }

    /// The samples before the call, entered then, that goes into the trace now.
    pub(super) fn add_samples(&mut self, enter: u64, to: &mut Vec<Record>) {
        if let Some(samples) = &mut self.samples {
            records(&mut samples.pending, enter, to);
        }
    }

    /// Says what became of the samples.
    pub(super) fn end_samples(&mut self) {
        let Some(samples) = self.samples.take() else {
            return;
        };
        let number = |number: u64| number.to_string().into_bytes();
        self.properties(&[("samples", number(samples.sampler.told))]);
        let lost = samples.sampler.lost();
        if lost > 0 {
            self.properties(&[("samples_lost", number(lost))]);
        }
    }
}
