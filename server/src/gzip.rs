//! gzip, with a bound on what it inflates to.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use crate::call::{Failure, INVALID_ARGUMENT, RESOURCE_EXHAUSTED};

/// Higher levels cost the transport's thread much time for little.
const LEVEL: Compression = Compression::new(1);

/// Messages that inflate to at most this size do not wait for others.
const INFLATED_AT_ONCE_BYTES: usize = 64 << 10;

static INFLATING: Semaphore = Semaphore::const_new(1);

/// Inflates a message like `inflate`. Large ones go one at a time, and between two of them the
/// transport's thread looks at its sockets: otherwise a burst of them would hold up other callers.
pub async fn inflate_in_turn(data: Bytes, most: usize) -> Result<Bytes, Failure> {
    if data.len() <= INFLATED_AT_ONCE_BYTES
        && let Ok(inflated) = inflate(&data, most.min(INFLATED_AT_ONCE_BYTES))
    {
        return Ok(inflated);
    }
    let _permit = INFLATING.acquire().await;
    yield_now().await;
    inflate(&data, most)
}

/// Inflates a message to at most `most` bytes. It may have several members (RFC 1952, section 2.2).
/// An empty one may be marked as compressed although it is not: clients leave that out.
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use futures_util::FutureExt;

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

    #[tokio::test]
    async fn large_messages_are_inflated_one_at_a_time_with_others_between_and_small_ones_at_once()
    {
        let large = Bytes::from(deflate(b"", &[7; INFLATED_AT_ONCE_BYTES + 1]).unwrap());
        let rounds = Arc::new(AtomicUsize::new(0));
        let inflating: Vec<_> = (0..8)
            .map(|_| {
                let (large, rounds) = (large.clone(), rounds.clone());
                tokio::spawn(async move {
                    inflate_in_turn(large, 1 << 20).await.unwrap();
                    rounds.load(Relaxed)
                })
            })
            .collect();
        let counted = rounds.clone();
        let other = tokio::spawn(async move {
            loop {
                yield_now().await; // until the sockets were looked at
                counted.fetch_add(1, Relaxed);
            }
        });
        let mut seen = Vec::new();
        for each in inflating {
            seen.push(each.await.unwrap());
        }
        other.abort();
        seen.dedup();
        assert!(seen.len() >= 4, "{seen:?}"); // as rounds may begin with either
        let small = Bytes::from(deflate(b"", &[7; INFLATED_AT_ONCE_BYTES]).unwrap());
        assert!(inflate_in_turn(small, 1 << 20).now_or_never().is_some());
        assert!(inflate_in_turn(large, 1 << 20).now_or_never().is_none());
    }
}
