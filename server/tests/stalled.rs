//! Requests whose body does not arrive, or is dropped.

mod service;

use std::time::Duration;

use bytepair_transport::server::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

/// Sends the start of a unary call over HTTP/1.1 and reads until the server closes the connection.
async fn answer_to(content_type: &str) -> String {
    answer_to_call("Unary", &format!("content-type: {content_type}")).await
}

async fn answer_to_call(rpc: &str, fields: &str) -> String {
    let server = Server::new(service::shared(service::settings(1 << 20)), None);
    let (mut link, theirs) = tokio::io::duplex(16 << 10);
    tokio::spawn(server.shake_hands(theirs, "unix:".into(), None, ()));
    let head = format!("POST /t.S/{rpc} HTTP/1.1\r\nhost: a");
    link.write_all(format!("{head}\r\n{fields}\r\ncontent-length: 100\r\n\r\n{{").as_bytes())
        .await
        .unwrap();
    let mut answer = Vec::new();
    link.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).to_lowercase()
}

#[tokio::test(start_paused = true)]
async fn a_json_call_whose_body_stalls_gets_a_timeout_and_its_connection_ends() {
    let answer = answer_to("application/json").await;
    assert!(answer.starts_with("http/1.1 408 "), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.contains("\r\ncontent-type: application/json\r\n"));
    assert!(answer.contains(r#"{"code":"deadline_exceeded","message":"the message did"#));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_grpc_web_whose_body_stalls_gets_a_status_of_its_protocol() {
    let answer = answer_to("application/grpc-web+proto").await;
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.contains("grpc-status: 4\r\n"), "{answer}");
    assert!(answer.contains("did not arrive in time"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn the_connection_of_a_rejected_stream_whose_body_stalls_ends() {
    let began = Instant::now(); // of the paused clock
    let fields = "content-type: application/connect+proto";
    let wrong = format!("{fields}\r\nconnect-timeout-ms: wrong");
    let unknown = format!("{fields}\r\nconnect-content-encoding: unknown");
    for (fields, code) in [(wrong, "invalid_argument"), (unknown, "unimplemented")] {
        let answer = answer_to_call("Bidi", &fields).await;
        assert!(answer.contains(code), "{answer}");
    }
    assert!(began.elapsed() < Duration::from_secs(15)); // before its maximum age
}

#[tokio::test]
async fn the_body_of_a_rejected_call_is_read_and_not_counted_as_held() {
    let shared = service::shared(service::settings(1 << 20));
    let server = Server::new(shared.clone(), None);
    let (mut link, theirs) = tokio::io::duplex(16 << 10);
    tokio::spawn(server.shake_hands(theirs, "unix:".into(), None, ()));
    let head = "POST /t.S/Unary HTTP/1.1\r\nhost: a\r\nconnect-timeout-ms: wrong";
    let rest = "content-type: application/json\r\ncontent-length: 200000\r\n\r\n";
    link.write_all(format!("{head}\r\n{rest}").as_bytes())
        .await
        .unwrap();
    // Much more than the link and the connection hold.
    link.write_all(&[b' '; 199_999]).await.unwrap();
    let mut answer = [0; 12];
    link.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400");
    assert_eq!(shared.peers.held(), 0);
}
