//! The least that a closed loop of N kept connections needs with hyper's client, so that the
//! generator has something to be measured against: `hyper_client HOST:PORT CONNECTIONS SECONDS`.
//! No latencies, no timeouts, no reconnecting; whatever goes wrong ends that connection.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [to, connections, seconds] = arguments.as_slice() else {
        return Err("usage: hyper_client HOST:PORT CONNECTIONS SECONDS".into());
    };
    let (connections, seconds): (usize, f64) = (connections.parse()?, seconds.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let good = Rc::new(Cell::new(0_u64));
    let (end, tasks) = (Instant::now() + Duration::from_secs_f64(seconds), LocalSet::new());
    for _ in 0..connections {
        let (to, good) = (to.clone(), Rc::clone(&good));
        tasks.spawn_local(async move {
            if let Err(error) = ask(&to, end, &good).await {
                eprintln!("a connection ended: {error}");
            }
        });
    }
    runtime.block_on(tasks);
    println!("{} requests in {seconds} s", good.get());
    Ok(())
}

async fn ask(to: &str, end: Instant, good: &Cell<u64>) -> Outcome<()> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let connection = tokio::task::spawn_local(connection);
    while Instant::now() < end {
        let request = Request::get("/").header("Host", to).body(Empty::<Bytes>::new())?;
        let mut answer = sender.send_request(request).await?;
        while let Some(frame) = answer.frame().await {
            frame?;
        }
        good.set(good.get() + u64::from(answer.status().is_success()));
        sender.ready().await?;
    }
    drop(sender);
    connection.await??;
    Ok(())
}
