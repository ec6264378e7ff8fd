//! Timeouts in the headers of gRPC and Connect.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};

const GRPC_TIMEOUT: &str = "grpc-timeout";
const CONNECT_TIMEOUT: &str = "connect-timeout-ms";

/// The deadline of a call; `None` if it has no valid timeout.
pub fn deadline(headers: &HeaderMap) -> Option<Instant> {
    let timeout = match (headers.get(GRPC_TIMEOUT), headers.get(CONNECT_TIMEOUT)) {
        (Some(value), _) => grpc_timeout(value.to_str().ok()?)?,
        (None, Some(value)) => Duration::from_millis(value.to_str().ok()?.parse().ok()?),
        (None, None) => return None,
    };
    Instant::now().checked_add(timeout)
}

fn grpc_timeout(value: &str) -> Option<Duration> {
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count.checked_mul(3600)?),
        "M" => Duration::from_secs(count.checked_mul(60)?),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
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
        for bad in ["", "m", "1", "1x", "-1S", "é"] {
            assert_eq!(grpc_timeout(bad), None, "{bad}");
        }
    }
}
