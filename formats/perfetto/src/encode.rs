//! Fields of messages in the encoding of Protocol Buffers.

/// Wire types: a number of variable length, 8 bytes, or length-prefixed bytes.
const VARINT: u32 = 0;
const FIXED: u32 = 1;
const BYTES: u32 = 2;

fn varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn tag(into: &mut Vec<u8>, field: u32, encoding: u32) {
    varint(into, (field << 3 | encoding).into());
}

/// A number; negative ones as two's complement.
pub fn number(into: &mut Vec<u8>, field: u32, value: u64) {
    tag(into, field, VARINT);
    varint(into, value);
}

/// A number of 8 bytes.
pub fn fixed(into: &mut Vec<u8>, field: u32, value: u64) {
    tag(into, field, FIXED);
    into.extend_from_slice(&value.to_le_bytes());
}

/// Header of a message of `length` bytes.
pub fn message_head(into: &mut Vec<u8>, field: u32, length: usize) {
    tag(into, field, BYTES);
    varint(into, length as u64);
}

/// A message.
pub fn message(into: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    message_head(into, field, bytes.len());
    into.extend_from_slice(bytes);
}
