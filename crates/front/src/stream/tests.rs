use super::*;
use crate::here::{self, Here};
use crate::mounts::{Arrival, Mount, Serves};
use crate::options::{MountOptions, Options};
use std::task::Waker;
use wire::control::MountId;
use wire::frame::{self, header};
use wire::{Claim, Segment};

/// A request that a worker has begun and the test plays the worker of.
struct Begun {
    segment: Arc<Segment>,
    claim: Claim,
    outlet: Arc<Outlet>,
    stream: Stream,
    written: u32,
}

impl Begun {
    /// On a thread that has no table yet.
    fn new() -> Begun {
        let segment = Arc::new(Segment::create().unwrap());
        segment.board().header.serving.store(1, Relaxed);
        let (ours, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let options = Box::leak(Box::new(Options::default()));
        here::install(Here::new(options, 0, 1));
        let mount = Mount {
            id: 0,
            name: "/".into(),
            hosts: Vec::new(),
            path: String::new(),
            declared: false,
            serves: Serves::App {},
            options: MountOptions::default(),
        };
        let ways = Some((segment.clone(), ours.into()));
        here::with(|here| here.mount(Arrival { mount: mount.into(), ways, proxy: None }));
        let (slot, position) = table::with(MountId(0), |table| {
            let slot = table.take_slot().unwrap();
            (slot, table.board().put(slot).unwrap())
        });
        let claim = segment.board().take(0, 1).unwrap();
        assert!(segment.board().begin(claim));
        let outlet = Arc::new(Outlet::default());
        let ticket = Ticket::bare(slot, position, Some(outlet.clone()));
        Begun { segment, claim, outlet, stream: Stream::new(ticket), written: 0 }
    }

    fn write(&mut self, kind: u8, payload: &[u8]) -> &mut Begun {
        for part in [&header(kind, payload.len())[..], payload] {
            self.segment.write_reply(self.claim.slot, self.written, part);
            self.written += part.len() as u32;
        }
        self
    }

    /// A HEAD frame that is as long as it takes for so many bytes to have been written.
    fn write_head(&mut self, length: usize) -> &mut Begun {
        let mut payload = Vec::new();
        frame::start_head(&mut payload, 200);
        frame::push_field(&mut payload, b"x", &vec![b'v'; length - 11]);
        self.write(frame::HEAD, &payload)
    }

    fn show(&self) {
        let slot = &self.segment.board().slots[self.claim.slot as usize];
        slot.written.store(self.written, Release);
    }

    fn complete(&self) {
        self.show();
        self.segment.board().complete(self.claim);
    }

    /// All that comes, body and errors.
    fn read_all(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut body = Vec::new();
        let mut errors = Vec::new();
        for _ in 0..100 {
            self.stream.wait(&Context::from_waker(Waker::noop()));
            self.stream.read(&mut |_| ()).unwrap();
            self.stream.ready.drain(..).for_each(|part| body.extend_from_slice(&part));
            self.outlet.take().iter().for_each(|part| errors.extend_from_slice(part));
        }
        (body, errors)
    }
}

#[test]
fn what_was_written_before_a_death_is_said() {
    let mut begun = Begun::new();
    begun.write(frame::ERRORS, b"last words\n").show();
    begun.segment.board().settle_seats(0, 1, false);
    assert_eq!(begun.read_all(), (vec![], b"last words\n".to_vec()));
    assert!(begun.stream.cut && begun.stream.is_over());
}

#[test]
fn errors_stand_anywhere_in_a_reply_that_is_sent_from_its_window() {
    // The second frame ends where the front ceases to copy, before it and behind it.
    for first in 4060..4100 {
        let ran = std::thread::spawn(move || {
            let mut begun = Begun::new();
            begun.write(frame::ERRORS, b"one ").write_head(100);
            begun.write(frame::BODY, &vec![b'a'; first - 112]).write(frame::ERRORS, b"two ");
            begun.write(frame::BODY, &[b'b'; 50_000]).write(frame::ERRORS, b"three");
            begun.write(frame::END, b"").complete();
            let (body, errors) = begun.read_all();
            assert_eq!(errors, b"one two three");
            assert_eq!(body, [vec![b'a'; first - 112], vec![b'b'; 50_000]].concat(), "{first}");
            assert!(begun.stream.ended && !begun.stream.cut);
        });
        ran.join().unwrap();
    }
}

#[test]
fn more_errors_than_may_wait_are_read_as_they_are_taken() {
    let mut begun = Begun::new();
    assert!(begun.outlet.poll_take(&Context::from_waker(Waker::noop())).is_pending());
    begun.write(frame::ERRORS, &[b'e'; 1_000_000]).write_head(100);
    begun.write(frame::BODY, b"body").write(frame::END, b"").complete();
    assert!(begun.stream.read(&mut |_| ()).unwrap());
    assert!(!begun.stream.read(&mut |_| ()).unwrap(), "they have not been taken");
    let (body, errors) = begun.read_all();
    assert_eq!((body, errors.len()), (b"body".to_vec(), 1_000_000));
}

#[test]
fn nothing_follows_the_end() {
    let mut begun = Begun::new();
    begun.write_head(100).write(frame::END, b"").write(frame::ERRORS, b"late").complete();
    assert!(begun.stream.read(&mut |_| ()).is_err());
}
