//! Waits until the kernel has forgotten the connections of the cell before.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Fewer sockets than this in TIME_WAIT disturb nobody.
pub const FEW: usize = 20;

/// How the wait went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waited {
    /// How long it took.
    pub time: Duration,
    /// Sockets in TIME_WAIT at its end.
    pub left: usize,
}

const POLL: Duration = Duration::from_millis(100);

/// Waits until fewer than `limit` sockets are in TIME_WAIT, but not longer than `at_most`.
pub fn drain(limit: usize, at_most: Duration) -> Waited {
    let begun = Instant::now();
    // The counter may be another's (a container's host); the table is ours, but costly to read.
    if counted() >= limit && listed().is_some_and(|listed| listed < limit) {
        return Waited { time: begun.elapsed(), left: listed().unwrap_or(0) };
    }
    loop {
        let left = counted();
        let time = begun.elapsed();
        if left < limit || time >= at_most {
            return Waited { time, left };
        }
        thread::sleep(POLL.min(at_most - time));
    }
}

/// The kernel's own count; 0 where it keeps none.
fn counted() -> usize {
    fs::read_to_string("/proc/net/sockstat").map_or(0, |text| parse(&text))
}

/// Those in the kernel's tables; None where it does not show them.
fn listed() -> Option<usize> {
    let waiting = |table| {
        let text = fs::read_to_string(table).ok()?;
        // sl local_address rem_address st: 06 is TIME_WAIT
        let states = text.lines().filter_map(|line| line.split_whitespace().nth(3));
        Some(states.filter(|state| *state == "06").count())
    };
    Some(waiting("/proc/net/tcp")? + waiting("/proc/net/tcp6").unwrap_or(0))
}

fn parse(sockstat: &str) -> usize {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default();
    let mut words = line.split_whitespace().skip_while(|word| *word != "tw").skip(1);
    words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn reads_the_kernels_count() {
        let text = "sockets: used 9\nTCP: inuse 5 orphan 0 tw 31 alloc 7 mem 2\nUDP: inuse 1\n";
        assert_eq!(parse(text), 31);
        assert_eq!(parse("UDP: inuse 1"), 0);
    }

    #[test]
    fn does_not_wait_for_few_but_for_many_until_its_time_is_over() {
        let none = drain(usize::MAX, Duration::from_secs(60));
        assert!(none.time < Duration::from_secs(1), "{none:?}");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        for _ in 0..5 {
            let client = TcpStream::connect(address).expect("connected");
            let (mut server, _) = listener.accept().expect("accepted");
            // Who closes first is the one who keeps the state.
            drop(client);
            let end = server.read(&mut [0]).expect("the end");
            assert_eq!(end, 0);
        }
        assert!(listed().is_some_and(|listed| listed >= 5), "{:?}", listed());
        let some = drain(5, Duration::from_millis(150));
        assert!(some.left >= 5, "{some:?}");
        assert!(some.time >= Duration::from_millis(150), "{some:?}");
    }
}
