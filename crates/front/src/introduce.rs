//! The PROXY header with which a trusted proxy begins a connection: whose it really is.

use crate::here;
use crate::io::Socket;
use crate::link::Due;
use crate::peer::{Home, Peer};
use crate::refuse::Seldom;
use crate::rules;
use crate::sweep;
use bytes::{Bytes, BytesMut};
use door::proxy::{self, Header};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, ready};

/// Whether this client must begin with a PROXY header.
pub fn is_due(peer: &Peer) -> bool {
    here::options().proxy_protocol && rules::trust().covers(peer.client)
}

/// Reads the header: who the client is, and what has come after it. None: the connection is of no
/// use; the timeouts of first bytes and heads count for it too.
pub async fn introduce(socket: &mut Socket, proxy: Arc<Peer>) -> Option<(Arc<Peer>, Bytes)> {
    let _watched = sweep::watch(proxy.clone()).await;
    let mut whole = BytesMut::new();
    let read = poll_fn(|context| {
        loop {
            match proxy::read(&whole) {
                Ok(None) => {}
                Ok(Some(found)) => return Poll::Ready(Some(Ok(found))),
                Err(fault) => return Poll::Ready(Some(Err(fault))),
            }
            if proxy.link.take_due()
                && matches!(sweep::due(&proxy), Some(Due::Close | Due::TooSlow))
            {
                return Poll::Ready(None);
            }
            let mut room = [0; 512];
            match ready!(socket.poll_read(context, &mut room)) {
                Ok(count) if count > 0 => {
                    proxy.link.received(&room[..count]);
                    whole.extend_from_slice(&room[..count]);
                }
                _ => return Poll::Ready(None),
            }
        }
    });
    match read.await? {
        Ok((header, length)) => {
            let rest = whole.split_off(length).freeze();
            Some((named(&proxy, header), rest))
        }
        Err(fault) => {
            static LOG: Seldom = Seldom::new();
            let who = proxy.who();
            LOG.say(&format!(
                "{who} counts as a proxy (trusted_proxies, proxy_protocol), but {fault}"
            ));
            None
        }
    }
}

fn named(proxy: &Arc<Peer>, header: Header) -> Arc<Peer> {
    match header {
        Header::Local => proxy.clone(),
        Header::Proxied { source, destination } => {
            let peer = Peer::tcp(source, Home::tcp(destination, proxy.home.door).into());
            Peer { accepted_ns: proxy.accepted_ns, ..peer }.into()
        }
    }
}
