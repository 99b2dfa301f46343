//! What clients may take: lengths of heads, connections, descriptors.

use crate::Options;
use crate::refuse::Refusal;
use hyper::http::request::Parts;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Header lines that hyper takes unless told otherwise.
pub const USUAL_FIELDS: usize = 100;

/// Heads that hyper would let pass: it knows neither `uri_limit` nor a `header_count` below 100.
pub fn check_head(head: &Parts, options: &Options) -> Result<(), Refusal> {
    let target = &head.uri;
    let absolute = target.authority().map_or(0, |authority| authority.as_str().len());
    let path = target.path_and_query().map_or(0, |path| path.as_str().len());
    if absolute + path > options.uri_limit {
        return Err(Refusal::TargetTooLong);
    }
    if head.headers.len() > options.header_count {
        return Err(Refusal::HeadTooLarge);
    }
    Ok(())
}

/// One of a listener's connections, until it is dropped.
pub struct OfListener(Arc<AtomicUsize>);

impl OfListener {
    /// One more; a refusal when there are as many as `connections` allows.
    pub fn one_more(count: &Arc<AtomicUsize>, options: &Options) -> Result<OfListener, Refusal> {
        let guard = OfListener(count.clone());
        let there = count.fetch_add(1, Relaxed);
        if options.connections != 0 && there >= options.connections {
            return Err(Refusal::TooManyConnections);
        }
        Ok(guard)
    }
}

impl Drop for OfListener {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Connections of each client address, while `connections_per_peer` is set.
static CLIENTS: Mutex<Option<HashMap<IpAddr, usize>>> = Mutex::new(None);

fn clients() -> MutexGuard<'static, Option<HashMap<IpAddr, usize>>> {
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of a client's connections, until it is dropped.
pub struct OfClient(Option<IpAddr>);

impl OfClient {
    /// One more from this address; a refusal when there are as many as `connections_per_peer`
    /// allows. None: nobody counts them.
    pub fn one_more(client: Option<IpAddr>, options: &Options) -> Result<OfClient, Refusal> {
        let Some(client) = client.filter(|_| options.connections_per_peer != 0) else {
            return Ok(OfClient(None));
        };
        let mut clients = clients();
        let count = clients.get_or_insert_default().entry(client).or_insert(0);
        if *count >= options.connections_per_peer {
            return Err(Refusal::TooManyOfClient);
        }
        *count += 1;
        Ok(OfClient(Some(client)))
    }
}

impl Drop for OfClient {
    fn drop(&mut self) {
        let Some(client) = self.0 else { return };
        let mut clients = clients();
        let Some(counts) = clients.as_mut() else { return };
        if let Some(count) = counts.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&client);
            }
        }
    }
}

/// One of the connections that are being turned away, until it is dropped.
pub struct Turned(());

static TURNED: AtomicUsize = AtomicUsize::new(0);

impl Turned {
    /// One more; None when they are so many that they would cost more than those that are served.
    pub fn one_more() -> Option<Turned> {
        const MOST: usize = 256;
        let turned = Turned(());
        (TURNED.fetch_add(1, Relaxed) < MOST).then_some(turned)
    }
}

impl Drop for Turned {
    fn drop(&mut self) {
        TURNED.fetch_sub(1, Relaxed);
    }
}

/// Lets the process open as many descriptors as it may: each connection is one.
pub fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    // As many as before are enough to serve somebody.
    let _ = setrlimit(Resource::Nofile, raised);
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn head(target: &str, fields: usize) -> Parts {
        let mut request = Request::get(target);
        for _ in 0..fields {
            request = request.header("a", "b");
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn heads_are_measured() {
        let options = Options { uri_limit: 10, header_count: 2, ..Options::default() };
        let check = |target, fields| check_head(&head(target, fields), &options);
        assert_eq!(check("/345678?a", 2), Ok(()));
        assert_eq!(check("/345678?ab", 0), Ok(()));
        assert_eq!(check("/345678?abc", 0), Err(Refusal::TargetTooLong));
        assert_eq!(check("http://abc/34567", 0), Ok(()));
        assert_eq!(check("http://abcd/345678", 0), Err(Refusal::TargetTooLong));
        assert_eq!(check("/", 3), Err(Refusal::HeadTooLarge));
    }

    #[test]
    fn a_listener_takes_so_many() {
        let options = Options { connections: 2, ..Options::default() };
        let count = Arc::default();
        let one_more = || OfListener::one_more(&count, &options);
        let (first, second) = (one_more(), one_more());
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(one_more().err(), Some(Refusal::TooManyConnections));
        drop(first);
        assert!(one_more().is_ok());
        drop(second);
        assert_eq!(count.load(Relaxed), 0);
    }

    #[test]
    fn so_many_of_one_client() {
        let options = Options { connections_per_peer: 1, ..Options::default() };
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().ok());
        let first = OfClient::one_more(one, &options);
        assert!(first.is_ok());
        assert_eq!(OfClient::one_more(one, &options).err(), Some(Refusal::TooManyOfClient));
        assert!(OfClient::one_more(other, &options).is_ok());
        assert!(OfClient::one_more(None, &options).is_ok());
        drop(first);
        assert!(clients().as_ref().unwrap().is_empty());
    }
}
