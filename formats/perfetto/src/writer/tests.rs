//! Reads back the output of a writer.

use std::io::Read;

use flate2::read::GzDecoder;

use super::*;
use crate::message::Trace;

fn read(file: &[u8]) -> Trace {
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    Trace::decode(&bytes[..]).unwrap()
}

/// A writer with the track 7, and a kind of slice.
fn begun() -> (TraceWriter<Vec<u8>>, Prepared) {
    let mut writer = TraceWriter::new(Vec::new()).unwrap();
    let track = Track {
        uuid: 7,
        parent: None,
        name: "rank 0",
        description: "",
        order: 0,
    };
    writer.track(&track).unwrap();
    let kind = Kind {
        name: "MPI_Send",
        category: "two_sided_send",
        values: &[("tag", Value::Number(-1)), ("where", Value::Text("a.c:3"))],
        colour: Some(9),
    };
    let kind = writer.prepare(&kind).unwrap();
    (writer, kind)
}

#[test]
fn texts_are_written_once_and_packets_in_order() {
    let (mut writer, kind) = begun();
    let count = BATCH as i64 / 16;
    for at in 0..count {
        let slice = Slice {
            track: 7,
            begin: 10 * at,
            kind: &kind,
            number: None,
            flows_from: &[42],
            flows_to: &[],
        };
        writer.begin(&slice).unwrap();
        writer.end(7, 10 * at + 5).unwrap();
    }
    let trace = read(&writer.finish().unwrap());
    assert_eq!(trace.packet.len() as i64, 2 + 2 * count);
    let interned = trace.packet.iter().filter(|p| p.interned_data.is_some());
    assert_eq!(interned.count(), 1);
    let times: Vec<u64> = trace.packet.iter().filter_map(|p| p.timestamp).collect();
    assert!(times.is_sorted() && times.len() as i64 == 2 * count);
    let events = trace.packet.iter().filter_map(|p| p.track_event.as_ref());
    let flows: usize = events.map(|event| event.flow_ids.len()).sum();
    assert_eq!(flows as i64, count);
}

/// The manual encoding equals that of the declared messages.
#[test]
fn events_are_messages() {
    let (mut writer, kind) = begun();
    let lost = writer.value_name("lost").unwrap();
    let slice = Slice {
        track: 7,
        begin: 1 << 40,
        kind: &kind,
        number: Some((lost, -5)),
        flows_from: &[1, u64::MAX],
        flows_to: &[3],
    };
    writer.instant(&slice).unwrap();
    writer.count(1 << 20, 0, -1).unwrap();
    let trace = read(&writer.finish().unwrap());
    let flags = |packet: &TracePacket| packet.sequence_flags;
    let first = NEEDS_INCREMENTAL_STATE | INCREMENTAL_STATE_CLEARED;
    assert_eq!(flags(&trace.packet[0]), Some(first));
    let number = |name, value| DebugAnnotation {
        name_iid: Some(name),
        int_value: Some(value),
        string_value_iid: None,
    };
    let text = DebugAnnotation {
        name_iid: Some(2),
        int_value: None,
        string_value_iid: Some(1),
    };
    let instant = TrackEvent {
        r#type: Some(event_type::INSTANT),
        track_uuid: Some(7),
        category_iids: vec![1],
        name_iid: Some(1),
        debug_annotations: vec![number(3, -5), number(1, -1), text],
        flow_ids: vec![1, u64::MAX],
        terminating_flow_ids: vec![3],
        correlation_id: Some(9),
        ..TrackEvent::default()
    };
    let count = TrackEvent {
        r#type: Some(event_type::COUNTER),
        track_uuid: Some(1 << 20),
        counter_value: Some(-1),
        ..TrackEvent::default()
    };
    let last = &trace.packet[trace.packet.len() - 2..];
    for (packet, (ns, event)) in last.iter().zip([(1 << 40, instant), (0, count)]) {
        let expected = TracePacket {
            timestamp: Some(ns),
            track_event: Some(event),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        };
        assert_eq!(*packet, expected);
    }
}

/// Accepts a limited number of bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_written_is_told() {
    for room in [0, 10, 10_000] {
        let mut writer = TraceWriter::new(Full(room)).unwrap();
        let mut random = 1u64;
        let count = |at: i64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            writer.count(1, at, (random >> 1) as i64)
        };
        let written: Result<(), Error> = (0..100_000).try_for_each(count);
        let Error::Write(why) = written
            .and_then(|()| writer.finish().map(|_| ()))
            .unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::StorageFull, "{room} bytes");
    }
}
