use super::*;
use crate::mounts::Serves;
use crate::table;
use std::task::Waker;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use wire::Segment;
use wire::sync::Ordering::Relaxed;

/// A thread's `Here` with mounts at these paths, and their segments. Each test has a thread.
fn mounted(paths: &[&str]) -> Vec<Arc<Segment>> {
    install(Here::new(Box::leak(Box::default()), 0, 1));
    (0..).zip(paths).map(|(id, path)| add(id, path)).collect()
}

fn add(id: u16, path: &str) -> Arc<Segment> {
    let segment = Arc::new(Segment::create().unwrap());
    segment.board().header.serving.store(1, Relaxed);
    let (ours, _) = std::os::unix::net::UnixStream::pair().unwrap();
    with(|here| here.mount(arrival(id, path, Some((segment.clone(), ours.into())))));
    segment
}

fn arrival(id: u16, path: &str, ways: Option<(Arc<Segment>, std::os::fd::OwnedFd)>) -> Arrival {
    let (name, path) = (format!("m{id}"), path.to_string());
    let (hosts, serves, options) = (Vec::new(), Serves::App {}, MountOptions::default());
    let mount = Mount { id, name, hosts, path, declared: true, serves, options };
    Arrival { mount: mount.into(), ways, proxy: None }
}

fn put(mount: MountId) -> u32 {
    table::with(mount, |table| {
        let slot = table.take_slot().unwrap();
        table.board().put(slot).unwrap();
        table.wait(slot, Waker::noop());
        slot
    })
}

/// A worker answers the mount's oldest request; whether it must ring.
fn answer(segment: &Segment) -> bool {
    let board = segment.board();
    let claim = board.take(0, 1).unwrap();
    assert!(board.begin(claim));
    board.complete(claim);
    board.fronts[0].must_ring()
}

fn unmount(mount: MountId) -> UnboundedReceiver<MountId> {
    let (tell, told) = unbounded_channel();
    with(|here| here.unmount(mount, Arc::new(Gone::new(mount, tell))));
    told
}

#[test]
fn workers_of_every_mount_wake_a_sleeping_thread() {
    let segments = mounted(&["", "/b"]);
    for (number, segment) in segments.iter().enumerate() {
        put(MountId(number as u16));
        before_sleep();
        assert!(answer(segment), "it sleeps");
        after_sleep();
        put(MountId(number as u16));
        assert!(!answer(segment), "it is awake");
        // Both have news: nothing is announced until they have been looked at.
        assert!(with(|here| !here.announce_sleep()));
        assert!(segments.iter().all(|segment| !segment.board().fronts[0].must_ring()));
        assert!(with(Here::look));
    }
}

#[test]
fn a_mount_goes_when_its_requests_are_through() {
    let segments = mounted(&["", "/b"]);
    let (kept, leaving) = (MountId(0), MountId(1));
    assert_eq!(route(None, "/b/x"), Some((leaving, 2)));
    let slot = put(leaving);
    let mut told = unmount(leaving);
    assert_eq!(route(None, "/b/x"), Some((kept, 0)));
    let held = Held::by(leaving);
    with(Here::let_go);
    assert!(told.try_recv().is_err(), "a request runs");
    answer(&segments[1]);
    table::with(leaving, |table| table.free(slot));
    with(Here::let_go);
    assert!(with(|here| here.has(leaving)), "a body is on its way");
    drop(held);
    with(Here::let_go);
    assert_eq!(told.try_recv(), Ok(leaving));
    assert!(with(|here| !here.has(leaving) && here.has(kept) && here.is_quiet()));
    assert_eq!(Arc::strong_count(&segments[1]), 1, "the segment is let go");
    // Of what is gone nothing is known, and its end is nobody's fault.
    drop(Held::by(leaving));
    assert_eq!(mount_options(leaving), MountOptions::default());
}

#[test]
fn a_mount_gets_new_settings_and_keeps_its_requests() {
    mounted(&["/a"]);
    let slot = put(MountId(0));
    with(|here| here.mount(arrival(0, "/b", None)));
    assert_eq!((route(None, "/a"), route(None, "/b")), (None, Some((MountId(0), 2))));
    assert_eq!(table::with(MountId(0), |table| table.in_flight()), 1);
    table::with(MountId(0), |table| table.free(slot));
    assert_eq!(mount(MountId(0)).unwrap().path, "/b");
}
