//! Writes packets as they come.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use prost::Message;
use rustc_hash::FxHashMap;

use crate::compress::Compressor;
use crate::encode;
use crate::message::{
    CounterDescriptor, DebugAnnotation, INCREMENTAL_STATE_CLEARED, Interned, InternedData,
    NEEDS_INCREMENTAL_STATE, ORDER_EXPLICIT, TracePacket, TrackDescriptor, TrackEvent, UNIT_COUNT,
    event_type, field,
};

/// Bytes of packets that are put together before they are compressed.
const BATCH: usize = 1 << 16;
/// The one sequence of packets that there is.
const SEQUENCE: u32 = 1;

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to write.
    #[error("cannot write the trace: {0}")]
    Write(#[from] io::Error),
}

/// A track.
#[derive(Clone, Copy, Debug)]
pub struct Track<'t> {
    /// Its identity, not 0.
    pub uuid: u64,
    /// The one that it is below.
    pub parent: Option<u64>,
    /// Its name; tracks side by side have different ones.
    pub name: &'t str,
    /// What it is, in words; may be empty.
    pub description: &'t str,
    /// Where it stands among those beside it.
    pub order: i32,
}

/// What is known of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'v> {
    /// A number.
    Number(i64),
    /// A text.
    Text(&'v str),
}

/// What slices have in common.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'k> {
    /// Their name.
    pub name: &'k str,
    /// What they belong to.
    pub category: &'k str,
    /// What is known of them.
    pub values: &'k [(&'k str, Value<'k>)],
    /// Slices of one number have one colour.
    pub colour: Option<u64>,
}

/// A [`Kind`], encoded for the trace that prepared it.
#[derive(Clone, Debug)]
pub struct Prepared(Vec<u8>);

/// Name of a value, for the trace that numbered it.
#[derive(Clone, Copy, Debug)]
pub struct ValueName(u64);

/// A slice that begins.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'s> {
    /// Its track.
    pub track: u64,
    /// When, ns.
    pub begin: i64,
    /// What it is.
    pub kind: &'s Prepared,
    /// A number that is known of it alone.
    pub number: Option<(ValueName, i64)>,
    /// Flows that begin in it.
    pub flows_from: &'s [u64],
    /// Flows that end in it. Perfetto draws a flow from the slice that begins first.
    pub flows_to: &'s [u64],
}

/// Texts that were written, by kind.
#[derive(Default)]
struct Texts {
    numbers: FxHashMap<String, u64>,
}

impl Texts {
    /// The number of a text; one that is new goes into `fresh`.
    fn number(&mut self, text: &str, fresh: &mut Vec<Interned>) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(text.to_owned(), number);
        fresh.push(Interned {
            iid: Some(number),
            text: Some(text.to_owned()),
        });
        number
    }
}

/// A trace that is being written.
pub struct TraceWriter<W> {
    out: Compressor<W>,
    /// Packets that are not compressed yet.
    bytes: Vec<u8>,
    /// The event that is being encoded, and what its packet says before it.
    event: Vec<u8>,
    head: Vec<u8>,
    is_begun: bool,
    categories: Texts,
    names: Texts,
    value_names: Texts,
    values: Texts,
}

impl<W: Write + Send + 'static> TraceWriter<W> {
    /// Begins a trace, which is compressed on a thread of its own.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn new(out: W) -> Result<TraceWriter<W>, Error> {
        Ok(TraceWriter {
            out: Compressor::new(out)?,
            bytes: Vec::new(),
            event: Vec::new(),
            head: Vec::new(),
            is_begun: false,
            categories: Texts::default(),
            names: Texts::default(),
            value_names: Texts::default(),
            values: Texts::default(),
        })
    }

    /// Makes a track known, before anything on it, and after the one that it is below.
    ///
    /// # Errors
    /// The system refuses to write; so below.
    pub fn track(&mut self, track: &Track) -> Result<(), Error> {
        self.descriptor(TrackDescriptor {
            child_ordering: Some(ORDER_EXPLICIT),
            ..descriptor(track)
        })
    }

    /// Makes a counter known: a track of numbers.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn counter_track(&mut self, track: &Track) -> Result<(), Error> {
        self.descriptor(TrackDescriptor {
            counter: Some(CounterDescriptor {
                unit: Some(UNIT_COUNT),
            }),
            ..descriptor(track)
        })
    }

    fn descriptor(&mut self, descriptor: TrackDescriptor) -> Result<(), Error> {
        self.packet(TracePacket {
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        })
    }

    /// Encodes what slices have in common, once for all of them.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn prepare(&mut self, kind: &Kind) -> Result<Prepared, Error> {
        let mut fresh = InternedData::default();
        let categories = &mut fresh.event_categories;
        let category = self.categories.number(kind.category, categories);
        let name = self.names.number(kind.name, &mut fresh.event_names);
        let annotations = kind.values.iter().map(|(name, value)| {
            let names = &mut fresh.debug_annotation_names;
            let mut annotation = DebugAnnotation {
                name_iid: Some(self.value_names.number(name, names)),
                ..DebugAnnotation::default()
            };
            match value {
                Value::Number(number) => annotation.int_value = Some(*number),
                Value::Text(text) => {
                    let texts = &mut fresh.debug_annotation_string_values;
                    annotation.string_value_iid = Some(self.values.number(text, texts));
                }
            }
            annotation
        });
        let event = TrackEvent {
            category_iids: vec![category],
            name_iid: Some(name),
            debug_annotations: annotations.collect(),
            correlation_id: kind.colour,
            ..TrackEvent::default()
        };
        self.intern(fresh)?;
        Ok(Prepared(event.encode_to_vec()))
    }

    /// Numbers the name of a value that differs from slice to slice.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn value_name(&mut self, name: &str) -> Result<ValueName, Error> {
        let mut fresh = InternedData::default();
        let names = &mut fresh.debug_annotation_names;
        let number = self.value_names.number(name, names);
        self.intern(fresh)?;
        Ok(ValueName(number))
    }

    fn intern(&mut self, fresh: InternedData) -> Result<(), Error> {
        if fresh == InternedData::default() {
            return Ok(());
        }
        self.packet(TracePacket {
            interned_data: Some(fresh),
            ..TracePacket::default()
        })
    }

    /// A slice begins.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn begin(&mut self, slice: &Slice) -> Result<(), Error> {
        self.slice(event_type::SLICE_BEGIN, slice)
    }

    /// A slice that takes no time.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn instant(&mut self, slice: &Slice) -> Result<(), Error> {
        self.slice(event_type::INSTANT, slice)
    }

    fn slice(&mut self, kind: i32, slice: &Slice) -> Result<(), Error> {
        self.event(kind, slice.track, slice.begin, |event| {
            if let Some((name, value)) = slice.number {
                let annotation = DebugAnnotation {
                    name_iid: Some(name.0),
                    int_value: Some(value),
                    ..DebugAnnotation::default()
                };
                let annotation = annotation.encode_to_vec();
                encode::message(event, field::DEBUG_ANNOTATIONS, &annotation);
            }
            event.extend_from_slice(&slice.kind.0);
            for flow in slice.flows_from {
                encode::fixed(event, field::FLOW_IDS, *flow);
            }
            for flow in slice.flows_to {
                encode::fixed(event, field::TERMINATING_FLOW_IDS, *flow);
            }
        })
    }

    /// The innermost slice of a track ends.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn end(&mut self, track: u64, ns: i64) -> Result<(), Error> {
        self.event(event_type::SLICE_END, track, ns, |_| {})
    }

    /// A counter has a new value.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn count(&mut self, track: u64, ns: i64, value: i64) -> Result<(), Error> {
        self.event(event_type::COUNTER, track, ns, |event| {
            encode::number(event, field::COUNTER_VALUE, value as u64);
        })
    }

    /// Adds an event, of which `fill` encodes the rest. Most packets are such: they are encoded
    /// where they go, without a message in between.
    fn event(
        &mut self,
        kind: i32,
        track: u64,
        ns: i64,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Error> {
        let flags = self.flags();
        let (event, head) = (&mut self.event, &mut self.head);
        event.clear();
        encode::number(event, field::TYPE, kind as u64);
        encode::number(event, field::TRACK_UUID, track);
        fill(event);
        head.clear();
        encode::number(head, field::TIMESTAMP, ns.max(0) as u64);
        encode::number(head, field::SEQUENCE_ID, SEQUENCE.into());
        encode::number(head, field::SEQUENCE_FLAGS, flags.into());
        encode::message_head(head, field::TRACK_EVENT, event.len());
        encode::message_head(&mut self.bytes, field::PACKET, head.len() + event.len());
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(event);
        self.flush(BATCH)
    }

    /// Adds any packet.
    fn packet(&mut self, mut packet: TracePacket) -> Result<(), Error> {
        packet.sequence_flags = Some(self.flags());
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        encode::message(&mut self.bytes, field::PACKET, &packet.encode_to_vec());
        self.flush(BATCH)
    }

    /// The flags of the next packet.
    fn flags(&mut self) -> u32 {
        match std::mem::replace(&mut self.is_begun, true) {
            true => NEEDS_INCREMENTAL_STATE,
            false => NEEDS_INCREMENTAL_STATE | INCREMENTAL_STATE_CLEARED,
        }
    }

    /// Compresses what there is, if that is so many bytes.
    fn flush(&mut self, least: usize) -> Result<(), Error> {
        if self.bytes.len() >= least {
            let room = Vec::with_capacity(self.bytes.capacity());
            self.out.write(std::mem::replace(&mut self.bytes, room))?;
        }
        Ok(())
    }

    /// Completes the trace.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn finish(mut self) -> Result<W, Error> {
        self.flush(0)?;
        Ok(self.out.finish()?)
    }
}

fn descriptor(track: &Track) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(track.uuid),
        name: Some(track.name.to_owned()),
        parent_uuid: track.parent,
        sibling_order_rank: Some(track.order),
        description: (!track.description.is_empty()).then(|| track.description.to_owned()),
        ..TrackDescriptor::default()
    }
}
