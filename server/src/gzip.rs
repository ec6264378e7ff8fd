//! gzip, with a bound on what it inflates to.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::call::{Failure, INVALID_ARGUMENT, RESOURCE_EXHAUSTED};

/// Higher levels cost the transport's thread much time for little.
const LEVEL: Compression = Compression::new(1);

/// Inflates a message to at most `most` bytes. It may have several members (RFC 1952, section 2.2). An
/// empty one may be marked as compressed although it is not: clients leave that out.
pub fn inflate(data: &[u8], most: usize) -> Result<Bytes, Failure> {
    if data.is_empty() {
        return Ok(Bytes::new());
    }
    let mut inflated = Vec::new();
    let bound = most as u64 + 1;
    match MultiGzDecoder::new(data)
        .take(bound)
        .read_to_end(&mut inflated)
    {
        Ok(size) if size <= most => Ok(inflated.into()),
        Ok(_) => Err(Failure::new(
            RESOURCE_EXHAUSTED,
            format!("the message inflates to more than {most} bytes"),
        )),
        Err(error) => Err(Failure::new(
            INVALID_ARGUMENT,
            format!("the message cannot be inflated: {error}"),
        )),
    }
}

/// Compresses a message behind the unchanged bytes `before`; `None` on failure.
pub fn deflate(before: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(before.to_vec(), LEVEL);
    encoder.write_all(data).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_inflated_up_to_the_bound() {
        let data = deflate(b"", &[7; 1000]).unwrap();
        assert_eq!(inflate(&data, 1000).unwrap(), vec![7; 1000]);
        assert_eq!(inflate(&data, 999).unwrap_err().code, RESOURCE_EXHAUSTED);
        assert_eq!(
            inflate(&data[..20], 1000).unwrap_err().code,
            INVALID_ARGUMENT
        );
    }

    #[test]
    fn all_members_are_inflated_and_nothing_else_may_follow() {
        let (first, second) = (deflate(b"", b"ab").unwrap(), deflate(b"", b"c").unwrap());
        let both = [first, second].concat();
        assert_eq!(inflate(&both, 3).unwrap(), "abc");
        assert_eq!(inflate(&both, 2).unwrap_err().code, RESOURCE_EXHAUSTED);
        let more = [&both[..], b"x"].concat();
        assert_eq!(inflate(&more, 3).unwrap_err().code, INVALID_ARGUMENT);
        assert_eq!(inflate(b"", 0).unwrap(), "");
    }

    #[test]
    fn what_stands_before_is_kept() {
        let data = deflate(b"head", b"message").unwrap();
        assert_eq!(&data[..4], b"head");
        assert_eq!(inflate(&data[4..], 7).unwrap(), "message");
    }
}
