//! The needed messages of a trace file, with names and numbers of Perfetto's
//! `perfetto_trace.proto`.

use prost::Message;

/// `TracePacket.sequence_flags`: earlier interned data is forgotten.
pub const INCREMENTAL_STATE_CLEARED: u32 = 1;
/// `TracePacket.sequence_flags`: earlier interned data is needed.
pub const NEEDS_INCREMENTAL_STATE: u32 = 2;

/// `TrackDescriptor.child_ordering`: by `sibling_order_rank`.
pub const ORDER_EXPLICIT: i32 = 3;
/// `CounterDescriptor.unit`: a count.
pub const UNIT_COUNT: i32 = 2;

/// `TrackEvent.type`.
pub mod event_type {
    /// A slice begins.
    pub const SLICE_BEGIN: i32 = 1;
    /// The innermost open slice of the track ends.
    pub const SLICE_END: i32 = 2;
    /// A slice without duration.
    pub const INSTANT: i32 = 3;
    /// A counter has a new value.
    pub const COUNTER: i32 = 4;
}

/// Numbers of the fields that [`TraceWriter`](crate::TraceWriter) encodes itself.
pub(crate) mod field {
    // Of `Trace`.
    pub const PACKET: u32 = 1;
    // Of `TracePacket`.
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    // Of `TrackEvent`.
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const TRACK_UUID: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const FLOW_IDS: u32 = 47;
    pub const TERMINATING_FLOW_IDS: u32 = 48;
}

/// A part of a file; concatenated parts form a file.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// Its packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One packet.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Time, ns.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// An event on a track.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Texts used from here on.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// See [`NEEDS_INCREMENTAL_STATE`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Id of the sequence; packets of a sequence share interned data.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Definition of a track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// A track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Identity.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Parent track.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Set for a counter track, which has numbers instead of slices.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// Order of its child tracks.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Position among its siblings.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
    /// Description.
    #[prost(string, optional, tag = "14")]
    pub description: Option<String>,
}

/// Properties of a counter track.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    /// Unit of the counter.
    #[prost(int32, optional, tag = "3")]
    pub unit: Option<i32>,
}

/// An event on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// See [`event_type`].
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Categories, by number.
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub category_iids: Vec<u64>,
    /// Name, by number.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Arguments shown with the event.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// A counter's value.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Flows that begin or pass here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Flows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
    /// Slices with equal ids have the same colour.
    #[prost(uint64, optional, tag = "52")]
    pub correlation_id: Option<u64>,
}

/// A name and a value.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// The name, by number.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// The value, if it is a number.
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    /// The value, if it is a text, by number.
    #[prost(uint64, optional, tag = "17")]
    pub string_value_iid: Option<u64>,
}

/// Texts by number.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    /// Categories of events.
    #[prost(message, repeated, tag = "1")]
    pub event_categories: Vec<Interned>,
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<Interned>,
    /// Names of arguments.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<Interned>,
    /// Text values of arguments.
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<Interned>,
}

/// One text. `EventCategory`, `EventName`, `DebugAnnotationName` and `InternedString` have the
/// same layout.
#[derive(Clone, PartialEq, Message)]
pub struct Interned {
    /// Number, from 1.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The text.
    #[prost(string, optional, tag = "2")]
    pub text: Option<String>,
}
