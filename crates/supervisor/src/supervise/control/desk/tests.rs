//! Clients of all sorts, over real sockets.

use super::*;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("oribi-desk-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn desk(&self) -> (Desk, PathBuf) {
        let path = self.0.join("control.sock");
        (Desk::open(Some(&path), 1).unwrap(), path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn connect(desk: &mut Desk, path: &Path) -> (UnixStream, u64) {
    let client = UnixStream::connect(path).unwrap();
    desk.welcome(Instant::now());
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    (client, desk.next - 1)
}

fn all(mut client: &UnixStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_file_is_for_its_owner_alone_and_goes_with_the_desk() {
    let scratch = Scratch::new("file");
    let (desk, path) = scratch.desk();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let second = Desk::open(Some(&path), 1).err().unwrap();
    assert!(second.contains("another server listens there"), "{second}");
    drop(desk);
    assert!(!path.exists());

    let long = scratch.0.join("x".repeat(120));
    assert!(Desk::open(Some(&long), 1).err().unwrap().contains("longer than sockets may have"));
    let nowhere = scratch.0.join("no/where.sock");
    assert!(Desk::open(Some(&nowhere), 1).err().unwrap().contains("does not exist"));
    fs::write(&path, "precious").unwrap();
    assert!(Desk::open(Some(&path), 1).err().unwrap().contains("not a socket"));
}

#[test]
fn a_request_may_come_in_pieces_and_without_an_end() {
    let scratch = Scratch::new("pieces");
    let (mut desk, path) = scratch.desk();
    let (mut client, id) = connect(&mut desk, &path);
    assert_eq!(desk.hear(id), None);
    client.write_all(b"{\"command\":").unwrap();
    assert_eq!(desk.hear(id), None);
    client.write_all(b"\"status\"}").unwrap();
    assert_eq!(desk.hear(id), None);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(desk.hear(id), Some(Request::Status));
    desk.end(id, &Reply::Done("x".into()));
    assert_eq!(all(&client), "{\"done\":\"x\"}\n");
    assert!(desk.clients.is_empty());
}

#[test]
fn garbage_is_answered_and_silence_is_ended() {
    let scratch = Scratch::new("garbage");
    let (mut desk, path) = scratch.desk();
    let (mut wild, id) = connect(&mut desk, &path);
    wild.write_all(b"\xff\x00GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(desk.hear(id), None);
    assert!(all(&wild).starts_with("{\"failed\":\"not a request"));

    let (mut long, id) = connect(&mut desk, &path);
    long.write_all(&[b'{'; 2 * REQUEST_MAX]).unwrap();
    assert_eq!((desk.hear(id), desk.clients.len()), (None, 0));

    let (gone, id) = connect(&mut desk, &path);
    drop(gone);
    assert_eq!((desk.hear(id), desk.clients.len()), (None, 0));

    let (silent, _) = connect(&mut desk, &path);
    let now = Instant::now();
    assert!(desk.due_in(now).is_some_and(|due| due <= PATIENCE));
    desk.sweep(now);
    assert_eq!(desk.clients.len(), 1);
    desk.sweep(now + PATIENCE);
    assert_eq!((all(&silent), desk.due_in(now)), (String::new(), None));
}

#[test]
fn a_newcomer_takes_the_place_of_one_that_says_nothing() {
    let scratch = Scratch::new("many");
    let (mut desk, path) = scratch.desk();
    let crowd: Vec<_> = (0..CLIENTS).map(|_| connect(&mut desk, &path)).collect();
    let (_newcomer, id) = connect(&mut desk, &path);
    assert_eq!(desk.clients.len(), CLIENTS);
    assert_eq!(all(&crowd[0].0), "");

    // Those who wait are not sent away.
    let ids: Vec<u64> = desk.clients.keys().copied().collect();
    ids.iter().for_each(|id| desk.keep(*id, Wait::End, None));
    let late = UnixStream::connect(&path).unwrap();
    desk.welcome(Instant::now());
    assert!(all(&late).contains("too many clients"));
    assert!(desk.clients.contains_key(&id) && desk.clients.len() == CLIENTS);
}

#[test]
fn one_that_waits_may_hang_up_and_one_that_does_not_read_is_not_waited_for() {
    let scratch = Scratch::new("waits");
    let (mut desk, path) = scratch.desk();
    let (mut client, id) = connect(&mut desk, &path);
    client.write_all(b"{\"command\":\"rollback\"}\n and more").unwrap();
    assert_eq!(desk.hear(id), Some(Request::Rollback { mount: None }));
    desk.keep(id, Wait::End, Some("it begins"));
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(desk.hear(id), None);
    let mut waits = 0;
    desk.settle(|wait| {
        waits += usize::from(*wait == Wait::End);
        None
    });
    assert_eq!(waits, 1);
    drop(client);
    assert_eq!((desk.hear(id), desk.clients.len()), (None, 0));

    let (lazy, id) = connect(&mut desk, &path);
    desk.end(id, &Reply::Done("x".repeat(1 << 20)));
    assert!(desk.fds().any(|(_, _, flags)| flags.contains(PollFlags::OUT)));
    desk.sweep(Instant::now() + 2 * PATIENCE);
    assert!(desk.clients.is_empty());
    assert!(all(&lazy).len() < 1 << 20);
}
