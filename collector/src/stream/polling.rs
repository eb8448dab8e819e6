//! Looks that find nothing: those that follow each other become one record.

use laggard_trace::{Beside, Extension, Record};

use super::{Lookup, Raw, Stream};

/// A polling loop stays one record while its tests follow each other within this gap.
pub const POLLING_GAP: std::time::Duration = std::time::Duration::from_micros(20);

/// A polling loop is one record for this long, so that little is lost if the program is killed.
pub const POLLING_LONGEST: std::time::Duration = std::time::Duration::from_millis(100);

/// Consecutive unsuccessful tests that are not in the trace yet.
#[derive(Default)]
pub struct Polling {
    pub count: u32,
    pub signature: u32,
    pub enter: u64,
    pub leave: u64,
    pub inside: u64,
    /// What was beside work, if anything: tests of two kinds in turns are told one by one, and that is large.
    around: Option<Box<Around>>,
}

/// What was beside work.
#[derive(Default)]
struct Around {
    /// The stretch before the tests.
    before: Beside,
    /// The tests.
    during: Beside,
}

impl Stream {
    /// Records an unsuccessful test, merged with the preceding ones where possible.
    pub fn record_polling(&mut self, raw: &Raw, enter: u64, leave: u64) {
        let (Lookup::Known(found) | Lookup::New(found)) = self.find_or_make(raw) else {
            return self.record_slowly(raw, &[], enter, leave);
        };
        let duration = leave.wrapping_sub(enter);
        self.signatures.statistics(found).add(duration);
        let is_pending = self.stretches.pending != 0;
        let during = is_pending.then(|| self.stretches.take_inside(enter, leave));
        let has_changes = is_pending && self.has_changes();
        let p = &mut self.polling;
        let follows = p.count > 0
            && !has_changes
            && p.count < u32::MAX
            && p.signature == found.id
            && leave.wrapping_sub(p.enter) < self.polling_longest
            && enter.wrapping_sub(p.leave) < self.polling_gap
            && p.inside + duration <= u64::from(u32::MAX);
        if follows {
            p.count += 1;
            p.leave = leave;
            p.inside += duration;
            if let Some(during) = &during {
                p.around.get_or_insert_default().during.add(during);
            }
            return;
        }
        self.tell_changes(Some(enter));
        let around = (self.stretches.pending != 0).then(|| {
            Box::new(Around {
                before: self.stretches.take(),
                during: during.unwrap_or_default(),
            })
        });
        if self.stretches.begin_looks(enter) {
            // No call of a program that looks all the time finds that reading old.
            self.look_at_wishes(leave);
            self.tell_profile(leave);
        }
        self.polling = Polling {
            count: 1,
            signature: found.id,
            enter,
            leave,
            inside: duration,
            around,
        };
        self.samples_before_looks();
        self.computed_before_looks();
    }

    /// Writes the unsuccessful tests that are not in the trace yet; the `next` record is entered
    /// then.
    #[cold]
    #[inline(never)]
    pub(super) fn flush_polling(&mut self, next: Option<u64>) {
        let mut p = std::mem::take(&mut self.polling);
        if p.count == 0 {
            return;
        }
        if let Some(looks) = self.stretches.end_looks(p.inside, p.leave - p.enter) {
            p.around.get_or_insert_default().during.add(&looks);
        }
        if !self.records {
            return;
        }
        self.recorded += u64::from(p.count);
        let gap = next.map_or(0, |next| next.saturating_sub(p.leave));
        // Sleep between looks is told with the look before it.
        let off = match gap >= self.polling_gap {
            true => self.stretches.take_slept(),
            false => 0,
        };
        let mut extensions: Vec<Record> = Vec::new();
        let mut before = Beside::default();
        if let Some(around) = &p.around {
            before = around.before;
            extensions.extend(before.extensions());
            extensions.extend(around.during.extensions_inside());
        }
        self.add_samples_before_looks(p.enter, &mut extensions);
        self.add_computed_before_looks(&before, &mut extensions);
        if p.count > 1 {
            let repeated = Record::extension(Extension::Repeated, p.count, p.inside as u32);
            extensions.push(repeated);
        }
        if off > 0 {
            extensions.push(Record::extension_u64(Extension::Off, off));
        }
        self.writer
            .push_extended(&extensions, p.enter, p.leave, p.signature);
    }
}
