//! Writes packets one at a time.

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

/// Bytes of packets collected before compression.
const BATCH: usize = 1 << 16;
/// Id of the only sequence of packets.
const SEQUENCE: u32 = 1;

/// Reason why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to write.
    #[error("cannot write the trace: {0}")]
    Write(#[from] io::Error),
}

/// A track.
#[derive(Clone, Copy, Debug)]
pub struct Track<'t> {
    /// Identity, not 0.
    pub uuid: u64,
    /// Parent track.
    pub parent: Option<u64>,
    /// Name; siblings have different ones.
    pub name: &'t str,
    /// Description; may be empty.
    pub description: &'t str,
    /// Position among its siblings.
    pub order: i32,
}

/// An argument of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'v> {
    /// A number.
    Number(i64),
    /// A text.
    Text(&'v str),
}

/// The common part of slices.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'k> {
    /// Name.
    pub name: &'k str,
    /// Category.
    pub category: &'k str,
    /// Arguments.
    pub values: &'k [(&'k str, Value<'k>)],
    /// Slices with equal numbers have the same colour.
    pub colour: Option<u64>,
}

/// A [`Kind`], encoded for the trace that prepared it.
#[derive(Clone, Debug)]
pub struct Prepared(Vec<u8>);

/// Number of an argument's name, valid for one trace.
#[derive(Clone, Copy, Debug)]
pub struct ValueName(u64);

/// The begin of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'s> {
    /// Track.
    pub track: u64,
    /// Begin, ns.
    pub begin: i64,
    /// The common part.
    pub kind: &'s Prepared,
    /// A numeric argument of this slice alone.
    pub number: Option<(ValueName, i64)>,
    /// Flows that begin in it.
    pub flows_from: &'s [u64],
    /// Flows that end in it. Perfetto draws a flow from the slice that begins first.
    pub flows_to: &'s [u64],
}

/// Numbers of the texts written, by kind.
#[derive(Default)]
struct Texts {
    numbers: FxHashMap<String, u64>,
}

impl Texts {
    /// The number of a text; a new text goes into `fresh`.
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

/// A trace being written.
pub struct TraceWriter<W> {
    out: Compressor<W>,
    /// Packets not compressed yet.
    bytes: Vec<u8>,
    /// The event being encoded, and the packet's fields before it.
    event: Vec<u8>,
    head: Vec<u8>,
    is_begun: bool,
    categories: Texts,
    names: Texts,
    value_names: Texts,
    values: Texts,
}

impl<W: Write + Send + 'static> TraceWriter<W> {
    /// Begins a trace; a thread of its own compresses it.
    ///
    /// # Errors
    /// The thread cannot be started.
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

    /// Defines a track. It must come before its events and after its parent.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn track(&mut self, track: &Track) -> Result<(), Error> {
        self.descriptor(TrackDescriptor {
            child_ordering: Some(ORDER_EXPLICIT),
            ..descriptor(track)
        })
    }

    /// Defines a counter: a track of numbers.
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

    /// Encodes the common part of slices, once for all of them.
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

    /// Registers the name of an argument that differs from slice to slice.
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

    /// Begins a slice.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn begin(&mut self, slice: &Slice) -> Result<(), Error> {
        self.slice(event_type::SLICE_BEGIN, slice)
    }

    /// Adds a slice without duration.
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

    /// Ends the innermost open slice of a track.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn end(&mut self, track: u64, ns: i64) -> Result<(), Error> {
        self.event(event_type::SLICE_END, track, ns, |_| {})
    }

    /// Sets a counter to a new value.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn count(&mut self, track: u64, ns: i64, value: i64) -> Result<(), Error> {
        self.event(event_type::COUNTER, track, ns, |event| {
            encode::number(event, field::COUNTER_VALUE, value as u64);
        })
    }

    /// Adds an event; `fill` encodes its remaining fields. Most packets are events, so they are
    /// encoded in place, without a message in between.
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

    /// Compresses the collected packets if they have at least `least` bytes.
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
