//! Timeouts in the headers of gRPC and Connect.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};

use crate::call::{Failure, INVALID_ARGUMENT};

const GRPC_TIMEOUT: &str = "grpc-timeout";
const CONNECT_TIMEOUT: &str = "connect-timeout-ms";

/// The deadline of a call; `None` if it has no timeout.
pub fn deadline(headers: &HeaderMap) -> Option<Instant> {
    Instant::now().checked_add(timeout(headers).ok()??)
}

/// Fails if a call has a timeout that cannot be read.
pub fn check(headers: &HeaderMap) -> Result<(), Failure> {
    timeout(headers).map(drop).map_err(|name| {
        let form = match name {
            GRPC_TIMEOUT => "at most eight digits and a unit, such as 250m for 250 ms",
            _ => "milliseconds, at most ten digits",
        };
        Failure::new(INVALID_ARGUMENT, format!("{name}: must be {form}"))
    })
}

/// The timeout of a call; or the name of the header that cannot be read.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, &'static str> {
    let read = |name, parse: fn(&str) -> Option<Duration>| {
        let parsed = |value: &HeaderValue| value.to_str().ok().and_then(parse).ok_or(name);
        headers.get(name).map(parsed).transpose()
    };
    Ok(read(GRPC_TIMEOUT, grpc_timeout)?.or(read(CONNECT_TIMEOUT, connect_timeout)?))
}

/// https://connectrpc.com/docs/protocol: at most ten digits.
fn connect_timeout(value: &str) -> Option<Duration> {
    number(value, 10).map(Duration::from_millis)
}

/// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md: at most eight digits and a unit.
fn grpc_timeout(value: &str) -> Option<Duration> {
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let count = number(digits, 8)?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// A number of one to `most` digits, without a sign.
fn number(digits: &str, most: usize) -> Option<u64> {
    let is_number = digits.len() <= most && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// Subtracts the time that a call has waited from its timeout header. gRPC allows eight digits.
pub fn shorten(headers: &mut HeaderMap, deadline: Instant) {
    let left = deadline
        .saturating_duration_since(Instant::now())
        .as_millis()
        .clamp(1, 99_999_999);
    if let Some(value) = headers.get_mut(GRPC_TIMEOUT) {
        *value = HeaderValue::try_from(format!("{left}m")).expect("digits");
    }
    if let Some(value) = headers.get_mut(CONNECT_TIMEOUT) {
        *value = HeaderValue::from(left as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_in_every_unit() {
        assert_eq!(grpc_timeout("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(grpc_timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(grpc_timeout("7n"), Some(Duration::from_nanos(7)));
        assert_eq!(connect_timeout("250"), Some(Duration::from_millis(250)));
        for bad in ["", "-1", "+1", "1x", "12345678901"] {
            assert_eq!(connect_timeout(bad), None, "{bad}");
        }
        for bad in ["", "m", "1", "1x", "-1S", "+1S", "123456789n", "é"] {
            assert_eq!(grpc_timeout(bad), None, "{bad}");
        }
    }
}
