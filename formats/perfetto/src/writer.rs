//! Writes packets as they come.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;

use crate::message::{
    CounterDescriptor, DebugAnnotation, INCREMENTAL_STATE_CLEARED, Interned, InternedData,
    NEEDS_INCREMENTAL_STATE, ORDER_EXPLICIT, Trace, TracePacket, TrackDescriptor, TrackEvent,
    UNIT_COUNT, event_type,
};

/// Packets that are put together before they are compressed.
const BATCH: usize = 256;

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

/// A slice that begins.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'s> {
    /// Its track.
    pub track: u64,
    /// When, ns.
    pub begin: i64,
    /// Its name.
    pub name: &'s str,
    /// Its kind.
    pub category: &'s str,
    /// What is known of it.
    pub values: &'s [(&'s str, Value<'s>)],
    /// Flows that begin in it.
    pub flows_from: &'s [u64],
    /// Flows that end in it. Perfetto draws a flow from the slice that begins first.
    pub flows_to: &'s [u64],
    /// Slices of one number have one colour.
    pub colour: Option<u64>,
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
pub struct TraceWriter<W: Write> {
    out: GzEncoder<W>,
    batch: Trace,
    bytes: Vec<u8>,
    is_begun: bool,
    categories: Texts,
    names: Texts,
    value_names: Texts,
    values: Texts,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace.
    pub fn new(out: W) -> TraceWriter<W> {
        TraceWriter {
            out: GzEncoder::new(out, Compression::fast()),
            batch: Trace::default(),
            bytes: Vec::new(),
            is_begun: false,
            categories: Texts::default(),
            names: Texts::default(),
            value_names: Texts::default(),
            values: Texts::default(),
        }
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
        let mut fresh = InternedData::default();
        let category = self
            .categories
            .number(slice.category, &mut fresh.event_categories);
        let name = self.names.number(slice.name, &mut fresh.event_names);
        let mut annotations = Vec::with_capacity(slice.values.len());
        for (name, value) in slice.values {
            let name = self
                .value_names
                .number(name, &mut fresh.debug_annotation_names);
            let mut annotation = DebugAnnotation {
                name_iid: Some(name),
                ..DebugAnnotation::default()
            };
            match value {
                Value::Number(number) => annotation.int_value = Some(*number),
                Value::Text(text) => {
                    let texts = &mut fresh.debug_annotation_string_values;
                    annotation.string_value_iid = Some(self.values.number(text, texts));
                }
            }
            annotations.push(annotation);
        }
        let event = TrackEvent {
            r#type: Some(kind),
            track_uuid: Some(slice.track),
            category_iids: vec![category],
            name_iid: Some(name),
            debug_annotations: annotations,
            flow_ids: slice.flows_from.to_vec(),
            terminating_flow_ids: slice.flows_to.to_vec(),
            correlation_id: slice.colour,
            ..TrackEvent::default()
        };
        let interned = (fresh != InternedData::default()).then_some(fresh);
        self.event(slice.begin, event, interned)
    }

    /// The innermost slice of a track ends.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn end(&mut self, track: u64, ns: i64) -> Result<(), Error> {
        let event = TrackEvent {
            r#type: Some(event_type::SLICE_END),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        self.event(ns, event, None)
    }

    /// A counter has a new value.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn count(&mut self, track: u64, ns: i64, value: i64) -> Result<(), Error> {
        let event = TrackEvent {
            r#type: Some(event_type::COUNTER),
            track_uuid: Some(track),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.event(ns, event, None)
    }

    fn event(
        &mut self,
        ns: i64,
        event: TrackEvent,
        interned_data: Option<InternedData>,
    ) -> Result<(), Error> {
        self.packet(TracePacket {
            timestamp: Some(ns.max(0) as u64),
            track_event: Some(event),
            interned_data,
            ..TracePacket::default()
        })
    }

    /// Adds a packet of the one sequence that there is.
    fn packet(&mut self, mut packet: TracePacket) -> Result<(), Error> {
        let first = match std::mem::replace(&mut self.is_begun, true) {
            true => 0,
            false => INCREMENTAL_STATE_CLEARED,
        };
        packet.sequence_flags = Some(NEEDS_INCREMENTAL_STATE | first);
        packet.trusted_packet_sequence_id = Some(1);
        self.batch.packet.push(packet);
        if self.batch.packet.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.bytes.clear();
        self.bytes.reserve(self.batch.encoded_len());
        // There is room: nothing can fail.
        let _ = self.batch.encode(&mut self.bytes);
        self.batch.packet.clear();
        self.out.write_all(&self.bytes)?;
        Ok(())
    }

    /// Completes the trace.
    ///
    /// # Errors
    /// See [`TraceWriter::track`].
    pub fn finish(mut self) -> Result<W, Error> {
        self.flush()?;
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn texts_are_written_once_and_packets_in_order() {
        let mut writer = TraceWriter::new(Vec::new());
        let track = Track {
            uuid: 7,
            parent: None,
            name: "rank 0",
            description: "",
            order: 0,
        };
        writer.track(&track).unwrap();
        for at in 0..2 * BATCH as i64 {
            let slice = Slice {
                track: 7,
                begin: 10 * at,
                name: "MPI_Send",
                category: "two_sided_send",
                values: &[("tag", Value::Number(-1)), ("where", Value::Text("a.c:3"))],
                flows_from: &[42],
                flows_to: &[],
                colour: None,
            };
            writer.begin(&slice).unwrap();
            writer.end(7, 10 * at + 5).unwrap();
        }
        let mut bytes = Vec::new();
        let file = writer.finish().unwrap();
        GzDecoder::new(&file[..]).read_to_end(&mut bytes).unwrap();
        let trace = Trace::decode(&bytes[..]).unwrap();
        assert_eq!(trace.packet.len(), 1 + 4 * BATCH);
        let interned = trace.packet.iter().filter(|p| p.interned_data.is_some());
        assert_eq!(interned.count(), 1);
        let times: Vec<u64> = trace.packet.iter().filter_map(|p| p.timestamp).collect();
        assert!(times.is_sorted() && times.len() == 4 * BATCH);
        let begins = trace.packet.iter().filter_map(|p| p.track_event.as_ref());
        let flows: usize = begins.map(|event| event.flow_ids.len()).sum();
        assert_eq!(flows, 2 * BATCH);
    }
}
