use super::*;
use crate::body::Payload;
use crate::options::MountOptions;
use crate::{Options, here};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{HeaderMap, Method};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

/// What a scripted backend does with each request that it has read.
type Script = fn(TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// A backend of the test's: how many connections have sent it a request, and the most at once.
#[derive(Default)]
struct Seen {
    requests: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let options = Options { spool_dir: std::env::temp_dir(), ..Options::default() };
    here::install(here::Here::new(Box::leak(Box::new(options)), 0, 1));
    runtime.block_on(async { timeout(Duration::from_secs(20), work).await.unwrap() })
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn serve(listener: TcpListener, script: Script) -> Arc<Seen> {
    let seen = Arc::<Seen>::default();
    let shared = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let seen = shared.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => return,
                    }
                }
                seen.requests.fetch_add(1, SeqCst);
                seen.most.fetch_max(seen.now.fetch_add(1, SeqCst) + 1, SeqCst);
                script(stream).await;
                seen.now.fetch_sub(1, SeqCst);
            });
        }
    });
    seen
}

fn answers(mut stream: TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        sleep(Duration::from_millis(2)).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            .await;
    })
}

fn breaks_off(stream: TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move { drop(stream) })
}

fn is_late(mut stream: TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        sleep(Duration::from_millis(300)).await;
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nlate").await;
    })
}

fn hangs(stream: TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
}

fn talks(mut stream: TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move { drop(stream.write_all(b"220 smtp.example ESMTP\r\n").await) })
}

fn sends_much(mut stream: TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n").await;
        let _ = stream.write_all(&vec![b'x'; 4 << 20]).await;
    })
}

fn options() -> MountOptions {
    MountOptions { reply_spool: 1 << 30, ..MountOptions::default() }
}

/// A proxy, and what its requests are allowed.
struct Mount {
    proxy: Arc<Proxy>,
    options: MountOptions,
}

impl Mount {
    fn look(&self) -> (Vec<(String, queue::Seen)>, usize) {
        self.proxy.look()
    }

    async fn answer(&self, method: Method) -> Result<Answer, Refusal> {
        let (target, payload) = ("/a?b".parse().unwrap(), Payload::default());
        let request = Outgoing::build(method, target, HeaderMap::new(), payload, self.options);
        self.proxy.answer(request, None).await
    }
}

fn mount(to: &[String], options: MountOptions) -> Arc<Mount> {
    Arc::new(Mount { proxy: Proxy::new("/", to, 1).unwrap(), options })
}

async fn ask(mount: &Arc<Mount>, method: Method) -> Result<Bytes, Refusal> {
    match mount.answer(method).await? {
        Answer::Reply(response) => {
            Ok(response.into_body().collect().await.map_err(|_| Refusal::BadReply)?.to_bytes())
        }
        Answer::Switched(_) => Err(Refusal::BadReply),
    }
}

#[test]
fn threads_share_one_queue_and_no_backend_sees_two_at_once() {
    run(async {
        let ((one, first), (two, second)) = (listen().await, listen().await);
        let seen = [serve(one, answers), serve(two, answers)];
        let mount = mount(&[first, second], options());
        let others = [(); 2].map(|()| {
            let mount = mount.clone();
            std::thread::spawn(move || {
                run(async {
                    let asked = (0..50).map(|_| {
                        let mount = mount.clone();
                        tokio::spawn(async move { ask(&mount, Method::GET).await })
                    });
                    for answer in asked.collect::<Vec<_>>() {
                        assert_eq!(answer.await.unwrap().unwrap(), "ok");
                    }
                });
            })
        });
        while others.iter().any(|other| !other.is_finished()) {
            sleep(Duration::from_millis(5)).await;
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(seen.each_ref().map(|seen| seen.most.load(SeqCst)), [1, 1]);
        assert_eq!(seen.iter().map(|seen| seen.requests.load(SeqCst)).sum::<usize>(), 100);
    });
}

#[test]
fn a_dead_backend_is_skipped_and_used_again_when_it_is_back() {
    run(async {
        let ((one, first), (two, second)) = (listen().await, listen().await);
        drop(one);
        serve(two, answers);
        let mount = mount(&[first.clone(), second], options());
        // Whatever the method: nothing of it has reached anybody.
        assert_eq!(ask(&mount, Method::POST).await.unwrap(), "ok");
        assert!(!mount.look().0[0].1.up);
        let seen = serve(TcpListener::bind(&first).await.unwrap(), answers);
        while !mount.look().0[0].1.up {
            sleep(Duration::from_millis(5)).await;
        }
        let both = tokio::join!(ask(&mount, Method::GET), ask(&mount, Method::GET));
        assert!(both.0.is_ok() && both.1.is_ok());
        assert_eq!(seen.requests.load(SeqCst), 1);
    });
}

#[test]
fn requests_wait_for_a_backend_that_is_restarted() {
    run(async {
        let (listener, address) = listen().await;
        drop(listener);
        let mount = mount(std::slice::from_ref(&address), options());
        let asked = tokio::spawn({
            let mount = mount.clone();
            async move { ask(&mount, Method::POST).await }
        });
        while mount.look().1 == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        serve(TcpListener::bind(&address).await.unwrap(), answers);
        assert_eq!(asked.await.unwrap().unwrap(), "ok");
    });
}

#[test]
fn who_breaks_off_loses_a_request_unless_that_may_be_sent_again() {
    run(async {
        let ((one, first), (two, second)) = (listen().await, listen().await);
        let seen = serve(one, breaks_off);
        serve(two, answers);
        let both = [first, second];
        let strict = mount(&both, options());
        assert_eq!(ask(&strict, Method::GET).await.unwrap_err(), Refusal::BackendLost);
        let retries = mount(&both, MountOptions { retry_idempotent: true, ..options() });
        assert_eq!(ask(&retries, Method::GET).await.unwrap(), "ok");
        let retries = mount(&both, MountOptions { retry_idempotent: true, ..options() });
        assert_eq!(ask(&retries, Method::POST).await.unwrap_err(), Refusal::BackendLost);
        assert_eq!(ask(&retries, Method::POST).await.unwrap(), "ok", "others come first");
        assert_eq!(seen.requests.load(SeqCst), 3);
    });
}

#[test]
fn what_is_late_is_said_to_be_and_its_backend_counts_as_busy() {
    run(async {
        let (listener, address) = listen().await;
        let seen = serve(listener, is_late);
        let limit = Duration::from_millis(50);
        let mount = mount(&[address], MountOptions { request_timeout: limit, ..options() });
        assert_eq!(ask(&mount, Method::GET).await.unwrap_err(), Refusal::RanTooLong);
        assert_eq!(mount.look().0[0].1.in_flight, 1);
        assert_eq!(ask(&mount, Method::GET).await.unwrap_err(), Refusal::RanTooLong);
        assert_eq!(seen.most.load(SeqCst), 1);
    });
}

#[test]
fn who_waits_too_long_is_refused_and_who_leaves_is_out_of_the_queue() {
    run(async {
        let (listener, address) = listen().await;
        let seen = serve(listener, hangs);
        let limit = Duration::from_millis(30);
        let mount = mount(&[address], MountOptions { queue_timeout: limit, ..options() });
        let running = tokio::spawn({
            let mount = mount.clone();
            async move { ask(&mount, Method::GET).await }
        });
        while mount.look().0[0].1.in_flight == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let began = Instant::now();
        assert_eq!(ask(&mount, Method::GET).await.unwrap_err(), Refusal::WaitedTooLong);
        assert!(began.elapsed() >= limit);
        assert!(timeout(limit / 3, ask(&mount, Method::GET)).await.is_err());
        assert_eq!(mount.look().1, 0);
        running.abort();
        assert_eq!(seen.requests.load(SeqCst), 1);
    });
}

#[test]
fn a_backend_is_free_while_its_client_still_reads() {
    run(async {
        let (listener, address) = listen().await;
        serve(listener, sends_much);
        let mount = mount(&[address], options());
        let Ok(Answer::Reply(response)) = mount.answer(Method::GET).await else {
            panic!("there should be a reply");
        };
        while mount.look().0[0].1.in_flight > 0 {
            sleep(Duration::from_millis(5)).await;
        }
        let body = response.into_body().collect().await.map_err(|_| "cut short").unwrap();
        assert_eq!(body.to_bytes().len(), 4 << 20);
    });
}

#[test]
fn without_disk_a_backend_waits_for_its_client() {
    run(async {
        let (listener, address) = listen().await;
        serve(listener, sends_much);
        let mount = mount(&[address], MountOptions { reply_spool: 0, ..options() });
        let Ok(Answer::Reply(response)) = mount.answer(Method::GET).await else {
            panic!("there should be a reply");
        };
        sleep(Duration::from_millis(50)).await;
        assert_eq!(mount.look().0[0].1.in_flight, 1);
        let body = response.into_body().collect().await.map_err(|_| "cut short").unwrap();
        assert_eq!(body.to_bytes().len(), 4 << 20);
        while mount.look().0[0].1.in_flight > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn what_is_not_http_is_no_reply() {
    run(async {
        let (listener, address) = listen().await;
        serve(listener, talks);
        assert_eq!(
            ask(&mount(&[address], options()), Method::GET).await.unwrap_err(),
            Refusal::BadBackend
        );
    });
}
