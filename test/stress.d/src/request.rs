//! What is asked of the server, and what became of it.

use crate::random::Random;
use crate::server::Shape;
use wire::now_ns;

/// Part of the workers' time that the app's sleeps take.
const USED: f64 = 0.4;

/// Which reply the app is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A few bytes at once.
    Plain,
    /// A few bytes in three parts.
    Stream,
    /// More than a slot's reply window, in three parts.
    Large,
    /// A request body that the app compares.
    Post,
}

/// So many at the rate of a shape, numbered from `first` and due from now on.
pub fn draw(random: &mut Random, shape: Shape, first: u64, count: u64) -> Vec<Request> {
    let Shape { rate, workers, threads, .. } = shape;
    let begin = now_ns() + 10_000_000;
    let mean = USED * 1e6 * (workers * threads) as f64 / rate as f64;
    let due = |index| begin + index * 1_000_000_000 / rate;
    (0..count).map(|index| Request::draw(random, first + index, due(index), mean)).collect()
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not at all.
    Pending,
    /// With a response, and the right body if the status is 200.
    Answer(u16),
    /// With a response to something else, or with nonsense.
    Wrong,
    /// The connection ended first.
    Cut,
    /// There was no connection to be had.
    Refused,
    /// This client went away, as it was meant to.
    Left,
    /// No answer in time.
    Hung,
}

/// One request.
pub struct Request {
    /// Its number, from 1.
    pub number: u64,
    /// When it should be sent, ns.
    pub due: u64,
    /// What is asked for.
    pub kind: Kind,
    /// How long the app sleeps, µs.
    pub micros: u64,
    /// Bytes of the body, or of a part of the reply.
    pub length: usize,
    /// How long this client waits before it goes away, ns.
    pub patience: Option<u64>,
    /// Whether it has a connection of its own, which it ends.
    pub fresh: bool,
    /// When its connection was begun to be made, ns.
    pub connected: u64,
    /// When it was sent, ns.
    pub sent: u64,
    /// Requests under way when it was sent, or when it ended if they were more.
    pub beside: usize,
    /// When it ended, ns.
    pub ended: u64,
    /// Bytes of the answer's body that came.
    pub got: usize,
    /// How.
    pub outcome: Outcome,
}

impl Request {
    /// A plain one that makes the app sleep.
    pub fn plain(number: u64, due: u64, micros: u64) -> Request {
        Request {
            number,
            due,
            kind: Kind::Plain,
            micros,
            length: 40,
            patience: None,
            fresh: false,
            connected: 0,
            sent: 0,
            beside: 0,
            ended: 0,
            got: 0,
            outcome: Outcome::Pending,
        }
    }

    /// One of a kind that chance picks; the app sleeps for `mean` µs on average.
    pub fn draw(random: &mut Random, number: u64, due: u64, mean: f64) -> Request {
        // Sleeps shorter than a timer's slack would only be noise.
        let micros = random.around(mean).min(8.0 * mean) as u64;
        let plain = Request::plain(number, due, if micros < 100 { 0 } else { micros });
        let (kind, length) = match random.between(0, 1000) {
            0..800 => (Kind::Plain, 40),
            800..900 => (Kind::Stream, 40),
            // More than the front reads at once, and more than a window holds.
            900..915 => (Kind::Large, 50_000),
            915..920 => (Kind::Large, 750_000),
            920..990 => (Kind::Post, random.between(1, 4_000) as usize),
            990..998 => (Kind::Post, random.between(10_000, 200_000) as usize),
            // More than fits into memory.
            _ => (Kind::Post, random.between(270_000, 600_000) as usize),
        };
        let patience = random.percent(1).then(|| random.between(0, 20_000_000));
        Request { kind, length, patience, ..plain }
    }

    fn part(&self) -> Vec<u8> {
        let mut part = format!("{} ", self.number).into_bytes();
        part.resize(part.len().max(self.length), b'x');
        part
    }

    /// The bytes to send.
    pub fn bytes(&self) -> Vec<u8> {
        let Request { number, micros, length, .. } = self;
        let (method, path, body) = match self.kind {
            Kind::Plain => ("GET", "plain", None),
            Kind::Stream | Kind::Large => ("GET", "stream", None),
            Kind::Post => ("POST", "post", Some(self.part())),
        };
        let mut bytes =
            format!("{method} /{path}/{number}/{micros}/{length} HTTP/1.1\r\nHost: stress\r\n")
                .into_bytes();
        if let Some(body) = &body {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        if self.fresh {
            bytes.extend_from_slice(b"Connection: close\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body.unwrap_or_default());
        bytes
    }

    /// The body of the right answer.
    pub fn answer(&self) -> Vec<u8> {
        match self.kind {
            Kind::Plain => self.part(),
            Kind::Stream | Kind::Large => self.part().repeat(3),
            Kind::Post => format!("{} ", self.number).into_bytes(),
        }
    }
}
