//! Connect, gRPC-Web, JSON and gRPC over HTTP/1.1, by the crate `connectrpc`. Its types stay in
//! this folder.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use connectrpc::codec::CodecFormat;
use connectrpc::compression::{CompressionProvider, CompressionRegistry};
use connectrpc::dispatcher::{RequestStream, StreamingResult, UnaryResult};
use connectrpc::{
    CompressionPolicy, ConnectError, ConnectRpcBody, ConnectRpcService, DeadlinePolicy, Dispatcher,
    Limits, MethodDescriptor, Payload, RequestContext,
};
use flate2::bufread::MultiGzDecoder;
use http::{HeaderMap, Uri};
use parking_lot::Mutex;
use tower_service::Service as _;

use crate::body::{self, ReadAhead, Recounted};
use crate::call::{Failure, Opened, PREFIX_BYTES};
use crate::calls::Calls;
use crate::gzip::{deflate, inflate};
use crate::messages::Messages;
use crate::methods::{Kind, Method};
use crate::peer::{HeldBytes, Peer};
use crate::settings::{COMPRESS_FROM_BYTES, SMALL_BYTES, Settings};

mod answer;

use answer::{answer, begin, error, unknown, unless, wants_gzip};

/// The body of an answer.
pub type Body = ConnectRpcBody;

/// Headers that name the compression of an answer.
const ENCODINGS: [&str; 3] = [
    "content-encoding",
    "connect-content-encoding",
    "grpc-encoding",
];

/// Whether the library has compressed an answer.
fn is_compressed(headers: &HeaderMap) -> bool {
    ENCODINGS.iter().any(|name| headers.contains_key(*name))
}

/// Marks a call whose message is read when Python requests it.
#[derive(Clone, Copy)]
pub struct Admitted(pub u64);

/// Marks a call that fails before its message is read.
#[derive(Clone)]
pub struct Rejected(pub Failure);

/// The messages of a stream, for which the library gets an empty body: it would read and inflate
/// messages ahead that nothing counts.
#[derive(Clone)]
pub struct Requests(Arc<Mutex<Option<Messages>>>);

impl Requests {
    pub fn new(messages: Messages) -> Self {
        Requests(Arc::new(Mutex::new(Some(messages))))
    }

    /// The messages, once.
    pub fn take(&self) -> Option<Messages> {
        self.0.lock().take()
    }

    fn of(context: &RequestContext) -> Option<Messages> {
        context.extensions().get::<Self>()?.take()
    }
}

/// gzip for the library, whose own reads only the first member of a message.
struct Gzip;

impl CompressionProvider for Gzip {
    fn name(&self) -> &'static str {
        "gzip"
    }

    fn compress(&self, data: &[u8]) -> Result<Bytes, ConnectError> {
        let compressed = deflate(b"", data).map(Bytes::from);
        compressed.ok_or_else(|| ConnectError::internal("the answer cannot be compressed"))
    }

    fn decompressor<'a>(&self, data: &'a [u8]) -> Result<Box<dyn Read + 'a>, ConnectError> {
        Ok(Box::new(MultiGzDecoder::new(data)))
    }

    fn decompress_with_limit(&self, data: &[u8], most: usize) -> Result<Bytes, ConnectError> {
        inflate(data, most).map_err(error)
    }
}

/// The protocols over calls.
pub struct Protocols {
    service: ConnectRpcService<Calling>,
    /// The same for small messages: those of some RPCs, and those in the query of a GET, which the
    /// library inflates at once.
    small: ConnectRpcService<Calling>,
}

impl Protocols {
    pub fn new(methods: HashMap<String, Method>, calls: Arc<Calls>, settings: &Settings) -> Self {
        let calling = Calling {
            methods: Arc::new(methods),
            calls,
        };
        let limited = |most: usize| {
            // The limit on a body counts gRPC's prefix too.
            let limits = Limits::default()
                .with_max_request_body_size(most + PREFIX_BYTES)
                .with_max_message_size(most);
            let gzip = CompressionRegistry::new().register(Gzip);
            let policy = CompressionPolicy::default().with_min_size(COMPRESS_FROM_BYTES);
            ConnectRpcService::new(calling.clone())
                .with_limits(limits)
                .with_compression(gzip)
                .with_compression_policy(policy)
                .with_deadline_policy(DeadlinePolicy::new().with_enforce_on_streams(true))
        };
        Protocols {
            service: limited(settings.max_message_bytes),
            // A query may be longer where headers may.
            small: limited(SMALL_BYTES.max(settings.max_metadata_bytes as usize)),
        }
    }

    /// The RPC at a path.
    pub fn method(&self, path: &str) -> Option<&Method> {
        self.service
            .dispatcher()
            .methods
            .get(path.strip_prefix('/')?)
    }

    /// The paths of all RPCs, without the first slash.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.service.dispatcher().methods.keys().map(String::as_str)
    }

    pub async fn answer(&self, request: http::Request<ReadAhead>) -> http::Response<body::Body> {
        let peer = request.extensions().get::<Arc<Peer>>().cloned();
        let method = self.method(request.uri().path());
        let is_small =
            request.method() == http::Method::GET || method.is_some_and(|it| it.is_small);
        let service = if is_small { &self.small } else { &self.service };
        let Ok(response) = service.clone().call(request).await;
        let peer = peer.filter(|_| is_compressed(response.headers()));
        response.map(|body| match (peer, matches!(body, Body::Streaming(_))) {
            (None, _) => body::Body::Protocols(body.into()),
            (Some(peer), true) => Recounted::stream(body, peer).into(),
            (Some(peer), false) => Recounted::whole(body, peer).into(),
        })
    }
}

#[derive(Clone)]
struct Calling {
    methods: Arc<HashMap<String, Method>>,
    calls: Arc<Calls>,
}

impl Calling {
    fn opened(
        &self,
        path: &str,
        mut context: RequestContext,
        message: Option<Bytes>,
        format: CodecFormat,
    ) -> Option<Opened> {
        let extensions = context.extensions();
        let peer = extensions.get::<Arc<Peer>>()?.clone();
        let headers_held = extensions.get::<Arc<HeldBytes>>()?.clone();
        let query = extensions
            .get::<Uri>()
            .and_then(|uri| uri.query().map(str::to_owned));
        Some(Opened {
            method: self.methods.get(path)?.number,
            peer,
            query,
            is_json: format == CodecFormat::Json,
            deadline: context.deadline(),
            size: message.as_ref().map_or(0, Bytes::len),
            is_excess: false,
            arrived: None,
            message,
            headers: std::mem::take(context.headers_mut()),
            headers_held,
        })
    }

    fn stream(
        &self,
        rejected: Option<Rejected>,
        wants_gzip: bool,
        opened: Option<Opened>,
        requests: Option<Messages>,
    ) -> StreamingResult {
        let calls = self.calls.clone();
        Box::pin(async move {
            if let Some(Rejected(failure)) = rejected {
                return Err(error(failure));
            }
            let opened = opened.ok_or_else(unknown)?;
            let deadline = opened.deadline;
            let (guard, started, reading) = calls.stream(opened);
            if let Some(requests) = requests {
                calls.start_reading(guard.id, requests, reading);
            }
            match started.await {
                Ok(Ok(started)) => {
                    Ok(begin(started, guard.until(deadline)).compress(unless(wants_gzip)))
                }
                Ok(Err(failure)) => Err(error(failure)),
                Err(_) => Err(error(Failure::unanswered())),
            }
        })
    }
}

impl Dispatcher for Calling {
    fn lookup(&self, path: &str) -> Option<MethodDescriptor> {
        let method = self.methods.get(path)?;
        Some(match method.kind {
            Kind::Unary => MethodDescriptor::unary(method.has_no_side_effects),
            Kind::ServerStream => MethodDescriptor::server_streaming(),
            Kind::ClientStream => MethodDescriptor::client_streaming(),
            Kind::BidiStream => MethodDescriptor::bidi_streaming(),
        })
    }

    fn call_unary(
        &self,
        path: &str,
        context: RequestContext,
        request: Payload,
        format: CodecFormat,
    ) -> UnaryResult {
        if let Some(Rejected(failure)) = context.extensions().get().cloned() {
            return Box::pin(async move { Err(error(failure)) });
        }
        let message = match request.encoded() {
            Ok(message) => message,
            Err(error) => return Box::pin(async move { Err(error) }),
        };
        let wants_gzip = wants_gzip(&context);
        if let Some(Admitted(id)) = context.extensions().get().copied() {
            let answered = self.calls.has_read(id, message);
            return Box::pin(async move { answer(answered.await, wants_gzip) });
        }
        let (calls, opened) = (
            self.calls.clone(),
            self.opened(path, context, Some(message), format),
        );
        Box::pin(async move {
            let (_guard, answered) = calls.unary(opened.ok_or_else(unknown)?);
            answer(answered.await, wants_gzip)
        })
    }

    fn call_server_streaming(
        &self,
        path: &str,
        context: RequestContext,
        request: Bytes,
        format: CodecFormat,
    ) -> StreamingResult {
        let rejected = context.extensions().get().cloned();
        self.stream(
            rejected,
            wants_gzip(&context),
            self.opened(path, context, Some(request), format),
            None,
        )
    }

    fn call_client_streaming(
        &self,
        path: &str,
        context: RequestContext,
        _: RequestStream,
        format: CodecFormat,
    ) -> UnaryResult {
        if let Some(Rejected(failure)) = context.extensions().get().cloned() {
            return Box::pin(async move { Err(error(failure)) });
        }
        let wants_gzip = wants_gzip(&context);
        let requests = Requests::of(&context);
        let (calls, opened) = (self.calls.clone(), self.opened(path, context, None, format));
        Box::pin(async move {
            let (guard, answered, reading) = calls.client_stream(opened.ok_or_else(unknown)?);
            calls.start_reading(guard.id, requests.ok_or_else(unknown)?, reading);
            answer(answered.await, wants_gzip)
        })
    }

    fn call_bidi_streaming(
        &self,
        path: &str,
        context: RequestContext,
        _: RequestStream,
        format: CodecFormat,
    ) -> StreamingResult {
        let rejected = context.extensions().get().cloned();
        let requests = Requests::of(&context);
        self.stream(
            rejected,
            wants_gzip(&context),
            self.opened(path, context, None, format),
            requests,
        )
    }
}
