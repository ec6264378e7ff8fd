//! Peers that send anything, before handlers that answer anything: nothing panics, and nothing is
//! left of a connection that has ended.
//!
//! Each seed is one server, several connections in memory, and a clock that only waits for them. A
//! failure names its seed; `FUZZ_SEED=seed` repeats it. `FUZZ_SECONDS` is how long to try more of
//! them.

mod peer;
mod service;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytepair_transport::call::{Command, Event, Failure};
use bytepair_transport::calls::{Calls, NO_CALL};
use bytepair_transport::methods::Kind;
use bytepair_transport::server::Server;
use tokio::time::sleep;

use peer::{Random, talk};

const SEEDS: u64 = 100;
/// Of the clock of a seed, for all that its connections may wait for.
const PATIENCE: Duration = Duration::from_secs(600);

/// What Python would know of a call that is under way.
struct Known {
    kind: Kind,
    has_begun: bool,
}

/// Handlers that do anything, in any order, also to calls that do not exist.
struct Handlers {
    calls: Arc<Calls>,
    random: Random,
    kinds: [Kind; 4],
    open: HashMap<u64, Known>,
    seen: HashSet<u64>,
}

impl Handlers {
    fn take(&mut self) {
        let (events, _) = self.calls.take(64);
        for (id, event) in events {
            match event {
                Event::Opened(opened) => {
                    assert!(self.seen.insert(id), "call {id} was opened twice");
                    let kind = self.kinds[opened.method];
                    let known = Known {
                        kind,
                        has_begun: false,
                    };
                    self.open.insert(id, known);
                }
                Event::Cancelled | Event::Ended => {
                    assert!(self.seen.contains(&id), "call {id} ended and never began");
                    self.open.remove(&id);
                }
                Event::Closed(_) => assert_eq!(id, NO_CALL),
                Event::Message(_) | Event::End | Event::Broken(..) | Event::Writable => {
                    assert!(
                        self.seen.contains(&id),
                        "call {id} had a message before it began"
                    );
                }
            }
        }
        self.act(); // as part of the batch
        self.calls.flush();
    }

    fn act(&mut self) {
        let ids: Vec<u64> = self.open.keys().copied().collect();
        let id = match ids.len() {
            0 => self.random.below(100) as u64,
            some => ids[self.random.below(some)],
        };
        let size = [0, 10, 2_000, 40_000, 200_000][self.random.below(5)];
        let data = vec![7; size];
        let failure = Failure {
            code: self.random.below(18) as u32,
            message: "é\n%".into(),
            details: vec![("google.rpc.ErrorInfo".into(), vec![1, 2, 3], String::new())],
            ..Failure::default()
        };
        let is_unary = self
            .open
            .get(&id)
            .is_none_or(|known| matches!(known.kind, Kind::Unary | Kind::ClientStream));
        match self.random.below(8) {
            0 | 1 => self.calls.command(id, Command::Read(1)),
            2 => {
                self.calls.command(id, Command::Fail(failure));
                self.open.remove(&id);
            }
            3 => self.calls.count_as_abandoned(id),
            4 | 5 if is_unary => {
                let trailers = vec![
                    ("x-request-id".into(), "1".into()),
                    ("bad name".into(), "\n".into()),
                ];
                self.calls.answer(id, &data, vec![], trailers);
                self.open.remove(&id);
            }
            4 | 5 => {
                if self
                    .open
                    .get_mut(&id)
                    .is_some_and(|known| !std::mem::replace(&mut known.has_begun, true))
                {
                    self.calls.command(id, Command::Start(vec![], vec![]));
                }
                self.calls.send(id, &data);
            }
            6 => self.calls.command(id, Command::Close),
            _ => {}
        }
    }
}

async fn one(seed: u64) {
    let mut random = Random::new(seed);
    let max_buffered_bytes = [48 << 10, 1 << 20, 64 << 20][random.below(3)];
    let shared = service::shared(service::settings(max_buffered_bytes));
    let calls = shared.calls.clone();
    let server = Server::new(shared.clone(), None);
    let handing_out = tokio::spawn(calls.clone().hand_out());
    let mut handlers = Handlers {
        calls: calls.clone(),
        random: random.child(),
        kinds: service::KINDS,
        open: HashMap::new(),
        seen: HashSet::new(),
    };
    let mut serving = Vec::new();
    for _ in 0..1 + random.below(4) {
        let (own, theirs) = tokio::io::duplex([512, 16 << 10, 256 << 10][random.below(3)]);
        tokio::spawn(talk(random.child(), own));
        let server = server.clone();
        let serve = server.shake_hands(theirs, "unix:".into(), None, ());
        serving.push(tokio::spawn(serve));
    }
    let drain_after = random.below(4_000);
    let began = tokio::time::Instant::now();
    for round in 0.. {
        handlers.take();
        (0..handlers.random.below(8)).for_each(|_| handlers.act());
        if round == drain_after {
            server.drain();
        }
        if serving.iter().all(|task| task.is_finished()) {
            break;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "a connection did not end with its peer"
        );
        sleep(Duration::from_millis(1)).await;
    }
    for task in serving {
        task.await.expect("no connection panics");
    }
    for _ in 0..100 {
        sleep(Duration::from_millis(50)).await; // what is dropped by tasks of the runtime
        handlers.take();
    }
    assert_eq!(calls.open(), 0, "calls are left");
    assert!(
        handlers.open.is_empty(),
        "handlers were not told that their calls are over"
    );
    assert_eq!(shared.peers.held(), 0, "bytes are still counted");
    assert!(!handing_out.is_finished(), "answers are handed out no more");
}

/// Panics of any task, those among them that nobody waits for.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn run(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let outcome = std::panic::catch_unwind(|| runtime.block_on(one(seed)));
    let is_good = outcome.is_ok() && PANICS.load(Relaxed) == 0;
    assert!(is_good, "FUZZ_SEED={seed} repeats this");
}

fn number(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().expect("a number"))
}

#[test]
fn nothing_is_left_of_any_peer() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Relaxed);
        usual(panic);
    }));
    if let Some(seed) = number("FUZZ_SEED") {
        return run(seed);
    }
    (0..SEEDS).for_each(run);
    let Some(seconds) = number("FUZZ_SECONDS") else {
        return;
    };
    let first = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64;
    let until = Instant::now() + Duration::from_secs(seconds);
    let more = (0..).take_while(|_| Instant::now() < until);
    let count = more.map(|index| run(first.wrapping_add(index))).count();
    println!("{count} more seeds from {first}: nothing found");
}
