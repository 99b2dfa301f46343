//! A backend that takes up another protocol (101): from then on bytes go both ways, and the backend
//! has its request until the connection ends.

use super::backend::Connection;
use super::queue::Turn;
use super::reply;
use crate::aside::Hijack;
use crate::io::Socket;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper_util::rt::TokioIo;
use std::os::fd::OwnedFd;

/// Takes the backend's connection from hyper; None if that cannot be.
pub async fn switch(mut response: Response<Incoming>, turn: Turn<Connection>) -> Option<Hijack> {
    let to = response.headers().get(UPGRADE).cloned();
    reply::clean(response.headers_mut());
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    to.and_then(|to| headers.insert(UPGRADE, to));
    let mut head = b"HTTP/1.1 101 Switching Protocols\r\n".to_vec();
    for (name, value) in response.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    let upgraded = hyper::upgrade::on(response).await.ok()?;
    let parts = upgraded.downcast::<TokioIo<Socket>>().ok()?;
    head.extend_from_slice(&parts.read_buf);
    let app: OwnedFd = match parts.io.into_inner() {
        Socket::Tcp(stream) => stream.into_std().ok()?.into(),
        Socket::Unix(stream) => stream.into_std().ok()?.into(),
    };
    Some(Hijack { head, app, held: Some(Box::new(turn)) })
}
