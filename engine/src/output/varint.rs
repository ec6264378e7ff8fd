//! Base-128 varints, the wire format of a packed `repeated uint32`.

/// Returns the varint of `value` as little-endian bytes, padded with zeros, and its length of 1 to
/// 5 bytes. Branch-free: whether an id takes two bytes or three is unpredictable.
#[inline(always)]
pub fn of(value: u32) -> (u64, usize) {
    let value = u64::from(value);
    let sevens = |i: u64| (value >> (7 * i) & 0x7f) << (8 * i);
    let spread = sevens(0) | sevens(1) | sevens(2) | sevens(3) | sevens(4);
    let more = |i: u64| u64::from(value >> (7 * i) > 0);
    let len = 1 + more(1) + more(2) + more(3) + more(4);
    let goes_on = 0x80_8080_8080 & ((1 << (8 * (len - 1))) - 1);
    (spread | goes_on, len as usize)
}

/// Decodes concatenated varints. Only the low 32 bits of each count, as Protocol Buffers defines.
/// None if `data` ends inside a varint, or if a varint has more than five bytes, which no 32-bit
/// value needs.
pub fn unpack(data: &[u8]) -> Option<Vec<u32>> {
    // Most ids take two bytes.
    let mut values = Vec::with_capacity(data.len() / 2 + 1);
    let mut rest = data;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first < 0x80 {
            values.push(u32::from(first));
            continue;
        }
        let mut value = u32::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
            shift += 7;
            if shift > 28 {
                return None;
            }
        }
        values.push(value);
    }
    Some(values)
}
