//! Extracts a field from a protobuf message by its number, without the message's type.
//!
//! protobuf's Python library makes an object of each item of a batch, and a string of each text,
//! which the engine would turn back into UTF-8. Here the content of a field stays bytes. protobuf
//! parses messages that are malformed or not simple.

/// The wire type of strings, bytes, messages and packed numbers.
const LENGTH_DELIMITED: u64 = 2;

/// Extracts a length-delimited field: the message without it, and each of its values. `None` if the
/// message is malformed, has groups or fixed-width numbers, or has the field in another wire type.
pub fn take(message: &[u8], number: u32) -> Option<(Vec<u8>, Vec<&[u8]>)> {
    let (mut rest, mut found) = (Vec::new(), Vec::new());
    let (mut at, mut kept) = (0, 0);
    while at < message.len() {
        let start = at;
        let key = varint(message, &mut at, SHORT)?;
        let is_wanted = key >> 3 == u64::from(number);
        match key & 7 {
            _ if key < 8 => return None, // there is no field 0
            0 if !is_wanted => {
                varint(message, &mut at, LONG)?;
            }
            LENGTH_DELIMITED => {
                let content = delimited(message, &mut at)?;
                if is_wanted {
                    found.push(content);
                    rest.extend_from_slice(&message[kept..start]);
                    kept = at;
                }
            }
            _ => return None,
        }
    }
    rest.extend_from_slice(&message[kept..]);
    Some((rest, found))
}

/// The number of varints in the content of a packed field.
pub fn count_varints(packed: &[u8]) -> usize {
    // At most 255 at a time, so that a vector register sums many bytes.
    let ends = |part: &[u8]| part.iter().map(|byte| u8::from(*byte < 0x80)).sum::<u8>();
    packed.chunks(255).map(|part| usize::from(ends(part))).sum()
}

/// The content of a field, of a message without other fields; empty for an empty message. `None`
/// for any other message.
pub fn only(message: &[u8], number: u32) -> Option<&[u8]> {
    if message.is_empty() {
        return Some(message);
    }
    let mut at = 0;
    let key = varint(message, &mut at, SHORT)?;
    let content = delimited(message, &mut at)?;
    (key == u64::from(number) << 3 | LENGTH_DELIMITED && at == message.len()).then_some(content)
}

/// The name and the text of a message without other fields: a string in field 1, and optionally a
/// message in field 2 that has only a string in field 1. Most messages of chats are such. `None`
/// for any other message.
pub fn named(message: &[u8]) -> Option<(&str, Option<&str>)> {
    let mut at = 0;
    let mut name = &[][..];
    if message.first() == Some(&NAME) {
        at = 1;
        name = delimited(message, &mut at)?;
    }
    let mut text = None;
    if at < message.len() {
        let is_content = message[at] == CONTENT;
        at += 1;
        let content = delimited(message, &mut at)?;
        if !is_content || content.is_empty() || at < message.len() {
            return None;
        }
        text = Some(std::str::from_utf8(only(content, 1)?).ok()?);
    }
    Some((std::str::from_utf8(name).ok()?, text))
}

/// Keys of fields, in one byte.
const NAME: u8 = 1 << 3 | LENGTH_DELIMITED as u8;
const CONTENT: u8 = 2 << 3 | LENGTH_DELIMITED as u8;

fn delimited<'a>(message: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let length = varint(message, at, SHORT)? as usize;
    let content = message.get(*at..)?.get(..length)?;
    *at += length;
    Some(content)
}

/// Maximum bytes of keys and lengths, as in protobuf.
const SHORT: usize = 5;
/// Maximum bytes of a number.
const LONG: usize = 10;

fn varint(message: &[u8], at: &mut usize, most: usize) -> Option<u64> {
    let mut value = 0;
    for (index, byte) in message.get(*at..)?.iter().take(most).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * index);
        if *byte < 0x80 {
            *at += index + 1;
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_taken_each_time_that_it_is_there() {
        let message = b"\x0a\x01a\x12\x02bc\x18\x96\x01\x12\x00";
        let (rest, found) = take(message, 2).unwrap();
        assert_eq!(rest, b"\x0a\x01a\x18\x96\x01");
        assert_eq!(found, [&b"bc"[..], b""]);
        assert_eq!(take(b"", 2), Some((vec![], vec![])));
    }

    #[test]
    fn what_is_malformed_or_unusual_is_not_taken() {
        for message in [
            &b"\x12"[..],                    // no length
            b"\x12\x03ab",                   // cut off
            b"\x10\x01",                     // the field as a number
            b"\x02\x00",                     // field 0
            b"\x0d\x00\x00\x00\x00",         // a fixed-width number
            b"\x0b\x0c",                     // a group
            b"\x12\xff\xff\xff\xff\x0f",     // beyond any message
            b"\x92\x80\x80\x80\x80\x00\x00", // a key in six bytes
        ] {
            assert_eq!(take(message, 2), None, "{message:?}");
        }
    }

    #[test]
    fn varints_are_counted_by_their_last_bytes() {
        assert_eq!(count_varints(b""), 0);
        assert_eq!(count_varints(b"\x01\xac\x02\x80\x80\x01"), 3);
        assert_eq!(count_varints(&[1; 1000]), 1000);
    }

    #[test]
    fn only_a_message_of_one_field_is_that_field() {
        assert_eq!(only(b"\x0a\x01a", 1), Some(&b"a"[..]));
        assert_eq!(only(b"", 1), Some(&b""[..]));
        for message in [
            &b"\x0a\x01a\x0a\x01b"[..],
            b"\x12\x01a",
            b"\x0a\x02a",
            b"\x08\x01",
        ] {
            assert_eq!(only(message, 1), None, "{message:?}");
        }
    }

    #[test]
    fn a_name_with_a_text_or_without() {
        assert_eq!(
            named(b"\x0a\x04user\x12\x03\x0a\x01x"),
            Some(("user", Some("x")))
        );
        assert_eq!(named(b"\x0a\x04user"), Some(("user", None)));
        assert_eq!(named(b""), Some(("", None)));
        for message in [
            &b"\x0a\x01\xff"[..],          // not UTF-8
            b"\x12\x06\x0a\x01x\x0a\x01y", // two texts in one part
            b"\x12\x00\x12\x00",           // two parts, which are none
            b"\x12\x00",                   // a part that is none
            b"\x12\x02\x10\x05",           // a part of another kind
            b"\x1a\x01n",                  // another field
            b"\x12\x04\x0a\x09ab",         // a text that ends too early
            b"\x12",
        ] {
            assert_eq!(named(message), None, "{message:?}");
        }
    }
}
