//! What a server of one RPC of each kind shares between its connections.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use bytepair_transport::calls::Calls;
use bytepair_transport::connect::Protocols;
use bytepair_transport::files::StaticFiles;
use bytepair_transport::methods::{Kind, Method};
use bytepair_transport::peer::Peers;
use bytepair_transport::settings::Settings;
use bytepair_transport::shared::Shared;

/// A unary RPC, then one of each kind of stream.
pub const METHODS: [&str; 4] = ["t.S/Unary", "t.S/Server", "t.S/Client", "t.S/Bidi"];
pub const KINDS: [Kind; 4] = [
    Kind::Unary,
    Kind::ServerStream,
    Kind::ClientStream,
    Kind::BidiStream,
];

/// Small limits, so that each of them is met.
pub fn settings(max_buffered_bytes: usize) -> Settings {
    Settings {
        max_connections: 8,
        max_connections_per_address: 0,
        handshake_timeout: Duration::from_secs(5),
        message_timeout: Duration::from_secs(2),
        max_concurrent_streams: 16,
        max_metadata_bytes: 4 << 10,
        max_message_bytes: 64 << 10,
        read_ahead_bytes: 1 << 10,
        max_unread_calls: 4,
        max_unsent_bytes: 32 << 10,
        max_buffered_bytes,
        max_abandoned_per_second: 20,
        max_connection_age: Some(Duration::from_secs(20)),
        keepalive_interval: Duration::from_secs(10),
        keepalive_timeout: Duration::from_secs(3),
        cors_origins: vec!["*".into()],
    }
}

pub fn shared(settings: Settings) -> Arc<Shared> {
    let calls = Calls::new(File::options().write(true).open("/dev/null").unwrap());
    let methods = METHODS
        .iter()
        .zip(KINDS)
        .enumerate()
        .map(|(number, (path, kind))| {
            let method = Method {
                number,
                kind,
                has_no_side_effects: true,
                is_small: false,
            };
            ((*path).to_owned(), method)
        });
    Arc::new(Shared {
        peers: Peers::new(
            settings.max_buffered_bytes,
            settings.max_abandoned_per_second,
        ),
        protocols: Protocols::new(methods.collect(), calls.clone(), &settings),
        settings,
        calls,
        files: StaticFiles::default(),
    })
}
