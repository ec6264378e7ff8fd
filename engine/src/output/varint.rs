//! Base-128 varints, the wire format of a packed `repeated uint32`.

/// Number of values that are packed at a time.
const SOME: usize = 24;

/// Concatenates the varints of the values.
pub fn pack(values: &[u32]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(values.len() * 5 / 2);
    let mut buffer = [0; SOME * 5 + size_of::<u64>()];
    for some in values.chunks(SOME) {
        let mut at = 0;
        for &value in some {
            let (varint, len) = of(value);
            buffer[at..at + size_of::<u64>()].copy_from_slice(&varint.to_le_bytes());
            at += len;
        }
        packed.extend_from_slice(&buffer[..at]);
    }
    packed
}

/// Returns the varint of `value` as little-endian bytes, padded with zeros, and its length of 1 to
/// 5 bytes. Branch-free: whether an id takes two bytes or three is unpredictable.
#[inline(always)]
fn of(value: u32) -> (u64, usize) {
    // The number of bits, divided by seven.
    let len = ((32 - (value | 1).leading_zeros() + 6) * 37) >> 8;
    let value = u64::from(value);
    let halves = value & 0x3fff | (value & 0xfff_c000) << 2 | (value >> 28) << 32;
    let sevens = halves & 0xf_007f_007f | (halves & 0x3f80_3f80) << 1;
    let goes_on = 0x80_8080_8080 & ((1 << (8 * (len - 1))) - 1);
    (sevens | goes_on, len as usize)
}

/// Decodes concatenated varints. Only the low 32 bits of each count, as Protocol Buffers defines.
/// None if `data` ends inside a varint, or if a varint has more than five bytes, which no 32-bit
/// value needs.
pub fn unpack(data: &[u8]) -> Option<Vec<u32>> {
    // Most ids take two bytes.
    let mut values = Vec::with_capacity(data.len() / 2 + 1);
    let (mut value, mut shift) = (0, 0);
    for &byte in data {
        if shift > 28 {
            return None;
        }
        value |= u32::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            values.push(value);
            (value, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_has_one_byte_for_each_seven_bits() {
        let edges = (0..32).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        for value in edges.chain([u32::MAX]) {
            let bits = (u32::BITS - value.leading_zeros()).max(1) as usize;
            let packed = pack(&[value]);
            assert_eq!(packed.len(), bits.div_ceil(7), "{value}");
            assert_eq!(unpack(&packed), Some(vec![value]));
        }
        let many: Vec<u32> = (0..1000).map(|i| i * i * i).collect();
        assert_eq!(unpack(&pack(&many)), Some(many));
        assert!(pack(&[]).is_empty());
    }
}
