//! Samples of stretches of computation: unwound at the end of the stretch, and written with the
//! call that ends it.

use laggard_trace::{Extension, Record};

use super::Stream;
use crate::log;
use crate::sampling::{Sampler, Wanted};

/// The samples of a location.
pub struct Samples {
    sampler: Sampler,
    /// By call path: ticks that samples stand for, of stretches that no record tells of yet.
    pending: Vec<(u32, u64)>,
    /// The same, of the stretch before the looks that are not in the trace yet.
    before_looks: Vec<(u32, u64)>,
}

impl Samples {
    /// What is pending belongs to the looks that begin.
    fn begin_looks(&mut self) {
        self.before_looks.append(&mut self.pending);
    }
}

/// As extension records, in the order of call paths.
fn records(samples: &mut Vec<(u32, u64)>, to: &mut Vec<Record>) {
    samples.sort_unstable();
    for (path, mut ticks) in samples.drain(..) {
        while ticks > 0 {
            let part = u32::try_from(ticks).unwrap_or(u32::MAX);
            ticks -= u64::from(part);
            to.push(Record::extension(Extension::Sampled, path, part));
        }
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
                    pending: Vec::new(),
                    before_looks: Vec::new(),
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
            match pending.iter_mut().find(|(known, _)| *known == path.0) {
                Some((_, sum)) => *sum = sum.saturating_add(ticks),
                None => pending.push((path.0, ticks)),
            }
        });
        if !pending.is_empty() {
            self.stretches.pending = 1;
        }
        if tracer.has_new() {
            self.define_paths();
        }
    }

    /// A call returned that took long: its samples are of no stretch.
    #[cold]
    #[inline(never)]
    pub(super) fn returned_late(&mut self) {
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
        self.stretches.begin();
    }

    /// Looks that are not in the trace yet begin.
    pub(super) fn samples_before_looks(&mut self) {
        if let Some(samples) = &mut self.samples {
            samples.begin_looks();
        }
    }

    /// The samples before the looks that go into the trace now.
    pub(super) fn add_samples_before_looks(&mut self, to: &mut Vec<Record>) {
        if let Some(samples) = &mut self.samples {
            records(&mut samples.before_looks, to);
        }
    }

    /// The samples before the call that goes into the trace now.
    pub(super) fn add_samples(&mut self, to: &mut Vec<Record>) {
        if let Some(samples) = &mut self.samples {
            records(&mut samples.pending, to);
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
