//! The ceiling of the front: hyper alone, answering every request with the same 13 bytes.
//!
//! `hyper_hello PORT THREADS` listens on 127.0.0.1. One thread means tokio's current-thread
//! runtime, which is what Oribi's front runs with one front thread.

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(port), Some(threads), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: hyper_hello PORT THREADS".into());
    };
    let (port, threads) = (port.parse()?, threads.parse()?);
    runtime(threads)?.block_on(listen(port))
}

fn runtime(threads: usize) -> std::io::Result<Runtime> {
    match threads {
        1 => Builder::new_current_thread().enable_all().build(),
        n => Builder::new_multi_thread().worker_threads(n).enable_all().build(),
    }
}

async fn listen(port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        // A client that is gone before it was accepted is its own affair.
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(serve(stream));
    }
}

async fn serve(stream: TcpStream) {
    // Both may fail only because the client left.
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.pipeline_flush(true);
    let _ = http.serve_connection(TokioIo::new(stream), service_fn(hello)).await;
}

async fn hello(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"Hello, World!")));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}
