//! A peer that speaks HTTP/2, HTTP/1.1 or nothing, more or less by the rules.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{sleep, timeout};

use crate::service::METHODS;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Another one, for a task of its own.
    pub fn child(&mut self) -> Self {
        Random::new(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 33) as usize) % bound
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1))
            .map(|_| self.next() as u8)
            .collect()
    }
}

/// Say something, read what comes or not, and leave.
pub async fn talk(mut random: Random, mut link: DuplexStream) {
    let is_http2 = !random.one_in(4);
    let reads = !random.one_in(4);
    let mut streams = Streams::new(!random.one_in(3));
    if is_http2
        && write(&mut link, &[PREFACE, &frame(4, 0, 0, &[])].concat())
            .await
            .is_none()
    {
        return;
    }
    for _ in 0..random.below(120) {
        let mut said = if is_http2 {
            streams.say(&mut random)
        } else {
            http1(&mut random)
        };
        if !streams.is_polite && random.one_in(30) {
            let length = said.len();
            said[random.below(length)] ^= 1 << random.below(8);
        }
        if !streams.is_polite && random.one_in(40) {
            said.truncate(said.len() / 2);
        }
        if write(&mut link, &said).await.is_none() {
            return; // it takes no more, or has closed
        }
        if reads {
            let mut buffer = [0; 4096];
            while let Ok(Ok(1..)) = timeout(Duration::from_micros(10), link.read(&mut buffer)).await
            {
            }
        }
        if random.one_in(4) {
            sleep(Duration::from_millis(random.below(40) as u64)).await;
        }
    }
    if random.one_in(3) {
        sleep(Duration::from_secs(random.below(40) as u64)).await;
    }
}

async fn write(link: &mut DuplexStream, data: &[u8]) -> Option<()> {
    timeout(Duration::from_secs(1), link.write_all(data))
        .await
        .ok()?
        .ok()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The streams of a connection, as its peer has them.
struct Streams {
    newest: u32,
    /// Those whose requests go on.
    open: Vec<u32>,
    /// It keeps to the rules of HTTP/2, so that its connection lives.
    is_polite: bool,
}

impl Streams {
    fn new(is_polite: bool) -> Self {
        Streams {
            newest: 1,
            open: Vec::new(),
            is_polite,
        }
    }

    fn any(&mut self, random: &mut Random) -> u32 {
        if self.is_polite && !self.open.is_empty() {
            return self.open[random.below(self.open.len())];
        }
        2 * random.below(self.newest as usize / 2 + 1) as u32 + 1
    }

    fn begin(&mut self, random: &mut Random) -> Vec<u8> {
        self.newest += 2;
        let stream = self.newest;
        let fields = headers(random, self.is_polite);
        if random.one_in(8) {
            return frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields);
        }
        self.open.push(stream);
        let mut said = frame(HEADERS, END_HEADERS, stream, &fields);
        if !random.one_in(3) {
            said.extend(self.message(random, stream));
        }
        said
    }

    fn message(&mut self, random: &mut Random, stream: u32) -> Vec<u8> {
        let is_last = random.one_in(3);
        if is_last {
            self.open.retain(|&open| open != stream);
        }
        data(random, stream, is_last)
    }

    fn say(&mut self, random: &mut Random) -> Vec<u8> {
        if self.newest == 1 || (self.is_polite && self.open.is_empty()) {
            return self.begin(random);
        }
        let old = self.any(random);
        match random.below(if self.is_polite { 18 } else { 24 }) {
            0..6 => self.begin(random),
            6..12 => self.message(random, old),
            12 | 13 => {
                self.open.retain(|&open| open != old);
                frame(3, 0, old, &(random.below(14) as u32).to_be_bytes())
            }
            14 => frame(6, 0, 0, &[1; 8]),
            15 => {
                let window = [0, 100, 65_535, 1 << 20][random.below(4)];
                setting(4, window)
            }
            16 | 17 => {
                let stream = if random.one_in(2) { 0 } else { old };
                frame(
                    8,
                    0,
                    stream,
                    &(1 + random.below(1 << 20) as u32).to_be_bytes(),
                )
            }
            18 => {
                let value = [0, 1, 1 << 14, u32::MAX][random.below(4)];
                setting(1 + random.below(9) as u16, value)
            }
            19 => {
                let (kind, flags, stream) = (random.below(12), random.below(256), random.below(9));
                frame(kind as u8, flags as u8, stream as u32, &random.bytes(40))
            }
            20 => frame(2, 0, old, &[0, 0, 0, 0, 1]),
            21 => frame(8, 0, old, &[0; 4]),
            _ => frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                old,
                &headers(random, false),
            ),
        }
    }
}

fn setting(identifier: u16, value: u32) -> Vec<u8> {
    let payload = [&identifier.to_be_bytes()[..], &value.to_be_bytes()[..]].concat();
    frame(4, 0, 0, &payload)
}

/// Fields as HPACK has them where nothing is compressed (RFC 7541, section 6.2.2).
fn headers(random: &mut Random, is_polite: bool) -> Vec<u8> {
    let is_grpc = is_polite || random.one_in(2);
    let path = if is_grpc && !random.one_in(10) {
        random.pick(&METHODS)
    } else {
        random.pick(&["t.S/None", "", "t.S/Unary?encoding=json&message=%7B%7D"])
    };
    let other_types = [
        "application/grpc-web+proto",
        "application/proto",
        "application/json",
        "application/connect+proto",
        "text/plain",
    ];
    let (method, authority, content_type) = if is_grpc {
        ("POST", "a", "application/grpc")
    } else {
        let methods = ["POST", "POST", "GET", "OPTIONS"];
        let authorities = ["a", "a:1", "not an authority"];
        (
            random.pick(&methods),
            random.pick(&authorities),
            random.pick(&other_types),
        )
    };
    let mut fields = vec![
        (":method", method.to_owned()),
        (":scheme", "http".to_owned()),
        (":path", format!("/{path}")),
        (":authority", authority.to_owned()),
        ("content-type", content_type.to_owned()),
        ("te", "trailers".to_owned()),
    ];
    if random.one_in(4) {
        fields.push((
            "grpc-encoding",
            random.pick(&["gzip", "identity", "br"]).to_owned(),
        ));
    }
    if random.one_in(4) {
        fields.push((
            "grpc-timeout",
            random
                .pick(&["1m", "50m", "2S", "1n", "99999999H", "x"])
                .to_owned(),
        ));
    }
    if !is_polite && random.one_in(4) {
        fields.push((
            "content-length",
            random.pick(&["0", "5", "70000", "x"]).to_owned(),
        ));
    }
    if random.one_in(20) {
        fields.extend((0..60).map(|_| ("x", "y".repeat(100))));
    }
    let mut packed = Vec::new();
    for (name, value) in fields {
        packed.extend([0, name.len() as u8]);
        packed.extend(name.as_bytes());
        packed.push(value.len() as u8);
        packed.extend(value.as_bytes());
    }
    packed
}

/// A message, or a part of one, whose prefix may lie.
fn data(random: &mut Random, stream: u32, is_last: bool) -> Vec<u8> {
    let size = [0, 3, 30, 900, 1_100, 12_000][random.below(6)];
    let stated = match random.below(6) {
        0 => [0, 1, 5_000, 70_000, u32::MAX as usize][random.below(5)],
        _ => size,
    };
    let mut message = vec![u8::from(random.one_in(20))];
    message.extend((stated as u32).to_be_bytes());
    message.extend(vec![8; size]);
    if random.one_in(8) {
        message.drain(..5);
    }
    frame(DATA, if is_last { END_STREAM } else { 0 }, stream, &message)
}

fn http1(random: &mut Random) -> Vec<u8> {
    if random.one_in(12) {
        let mut garbage = random.bytes(60);
        garbage.push(b'\n');
        return garbage;
    }
    let method = random.pick(&["POST", "POST", "POST", "GET", "OPTIONS", "PRI"]);
    let path = random.pick(&[
        "t.S/Unary",
        "t.S/Server",
        "t.S/None",
        "t.S/Unary?message=%7B%7D&encoding=json",
        "",
        "*",
    ]);
    let content_type = random.pick(&[
        "application/json",
        "application/json",
        "application/proto",
        "application/grpc-web",
        "application/connect+json",
        "text/plain",
    ]);
    let body = vec![b'1'; [0, 2, 900, 2_000, 30_000][random.below(5)]];
    let length = if random.one_in(6) {
        random.below(100_000)
    } else {
        body.len()
    };
    let origin = random.pick(&[
        "",
        "origin: https://a.example\r\naccess-control-request-method: POST\r\n",
    ]);
    let head = if random.one_in(6) {
        format!(
            "{method} /{path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n"
        )
    } else {
        format!(
            "{method} /{path} HTTP/1.1\r\nhost: a\r\n{origin}content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    [head.as_bytes(), &body].concat()
}
