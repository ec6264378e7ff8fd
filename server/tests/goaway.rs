//! The end of a connection that its peer keeps open.

mod service;

use std::time::Duration;

use bytepair_transport::server::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::timeout;

/// The preface and SETTINGS of a client (RFC 9113, section 3.4).
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const ANY_STREAM: u32 = (1 << 31) - 1;

/// Acknowledges each PING until the server closes the connection. Returns the last stream of each
/// GOAWAY.
async fn goaways(mut link: DuplexStream) -> Vec<u32> {
    let mut found = Vec::new();
    let mut head = [0; 9];
    while link.read_exact(&mut head).await.is_ok() {
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        link.read_exact(&mut payload).await.unwrap();
        match (head[3], head[4]) {
            (GOAWAY, _) => found.push(u32::from_be_bytes(payload[..4].try_into().unwrap())),
            (PING, 0) => {
                head[4] = ACK;
                link.write_all(&[&head, &payload[..]].concat())
                    .await
                    .unwrap();
            }
            _ => {}
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_its_maximum_age_ends_although_its_peer_keeps_it_open() {
    let server = Server::new(service::shared(service::settings(1 << 20)), None);
    let (mut link, theirs) = tokio::io::duplex(16 << 10);
    tokio::spawn(server.shake_hands(theirs, "unix:".into(), None, ()));
    link.write_all(HELLO).await.unwrap();
    let last = timeout(Duration::from_secs(60), goaways(link)).await;
    // h2 repeats the first GOAWAY before the one that names the last call.
    assert_eq!(last.expect("it ends"), [ANY_STREAM, ANY_STREAM, 0]);
}
