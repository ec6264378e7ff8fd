//! Repeated fields whose elements are a name and a text, as Protocol Buffers writes them: the messages
//! of a chat. Protobuf would make six objects for each.

/// The number and the kind of a field's key are in one byte: this kind has a length before it.
const LENGTH_DELIMITED: u8 = 2;
const NAME: u8 = 1 << 3 | LENGTH_DELIMITED;
const CONTENT: u8 = 2 << 3 | LENGTH_DELIMITED;
const TEXT: u8 = 1 << 3 | LENGTH_DELIMITED;

/// A name, and a text if there is one.
pub type Named<'a> = (&'a str, Option<&'a str>);

/// Takes the field `number`, up to 15, out of a message. Gives the message without it, and its
/// elements: a string in field 1 and, if it is there, a message in field 2 that holds a string in
/// field 1. None for anything else, and for what is malformed: protobuf knows.
pub fn take(message: &[u8], number: u8) -> Option<(Vec<u8>, Vec<Named<'_>>)> {
    let (mut rest, mut found) = (Vec::new(), Vec::new());
    let mut data = message;
    while let Some((&key, after)) = data.split_first() {
        // There is no field 0, and no number above 15 in one byte.
        if !(8..128).contains(&key) {
            return None;
        }
        let start = data;
        if key & 7 == LENGTH_DELIMITED {
            let (content, after) = delimited(after)?;
            data = after;
            if key >> 3 == number {
                found.push(named(content)?);
                continue;
            }
        } else if key & 7 == 0 && key >> 3 != number {
            data = after_varint(after)?;
        } else {
            return None;
        }
        rest.extend_from_slice(&start[..start.len() - data.len()]);
    }
    Some((rest, found))
}

fn named(message: &[u8]) -> Option<Named<'_>> {
    let (name, after) = match message.split_first() {
        Some((&NAME, after)) => delimited(after)?,
        _ => (&[][..], message),
    };
    let text = match after.split_first() {
        None => None,
        Some((&CONTENT, after)) => {
            let (content, after) = delimited(after)?;
            let (&key, text) = content.split_first()?;
            let (text, behind) = delimited(text)?;
            if key != TEXT || !after.is_empty() || !behind.is_empty() {
                return None;
            }
            Some(std::str::from_utf8(text).ok()?)
        }
        Some(_) => return None,
    };
    Some((std::str::from_utf8(name).ok()?, text))
}

/// What a length stands before, and what comes behind it.
fn delimited(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0;
    // No length has more than 32 bits.
    for (at, &byte) in data.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return data[at + 1..].split_at_checked(length);
        }
    }
    None
}

fn after_varint(data: &[u8]) -> Option<&[u8]> {
    let last = data.iter().take(10).position(|&byte| byte < 0x80)?;
    Some(&data[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn names_with_a_text_or_none() {
        let message = b"\x0a\x01e\x1a\x0b\x0a\x04user\x12\x03\x0a\x01x\x1a\x06\x0a\x04user\x30\x96\x01\x1a\x00";
        let found = take(message, 3).unwrap();
        assert_eq!(found.0, b"\x0a\x01e\x30\x96\x01");
        assert_eq!(found.1, [("user", Some("x")), ("user", None), ("", None)]);
        assert_eq!(take(b"", 3), Some((Vec::new(), Vec::new())));
    }

    #[test]
    fn what_has_more_or_is_malformed() {
        for message in [
            &b"\x1a\x03\x0a\x01\xff"[..],          // not UTF-8
            b"\x1a\x08\x12\x06\x0a\x01x\x0a\x01y", // two texts in one part
            b"\x1a\x04\x12\x00\x12\x00",           // two parts, which are none
            b"\x1a\x04\x12\x02\x10\x05",           // a part of another kind
            b"\x1a\x03\x1a\x01n",                  // another field
            b"\x1a\x06\x12\x04\x0a\x09ab",         // a text that ends too early
            b"\x1a\x80",
            b"\x1a\xff\xff\xff\xff\xff\x01",
            b"\x18\x01", // the field, as a number
            b"\x30\x80",
            b"\x02\x00",
            b"\x80\x01\x00",
            b"\x1d\x00\x00\x00\x00",
        ] {
            assert_eq!(take(message, 3), None, "{message:?}");
        }
    }
}
