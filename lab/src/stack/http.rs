//! A GET, to ask a server something: never for a figure.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A stream that gives up when nothing has come for so long.
trait Stream: Read + Write {
    fn patience(&self, time: Duration) -> std::io::Result<()>;
}

impl Stream for TcpStream {
    fn patience(&self, time: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Stream for UnixStream {
    fn patience(&self, time: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// Status and body of `path` at `tcp://HOST:PORT` or `unix:///PATH`, on a connection of its own.
pub fn get(url: &str, path: &str, patience: Duration) -> Result<(u16, String), String> {
    let until = Instant::now() + patience;
    let failed = |error: std::io::Error| format!("{url}: {error}");
    let mut stream = connect(url, patience).map_err(failed)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.patience(patience).map_err(failed)?;
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(whole) = parse(&answer, false) {
            return Ok(whole);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("{url}{path}: no answer within {} s", patience.as_secs_f64()));
        }
        stream.patience(left).map_err(failed)?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(error) => return Err(failed(error)),
        }
    }
    parse(&answer, true).ok_or_else(|| format!("{url}{path}: closed before an answer was complete"))
}

fn connect(url: &str, patience: Duration) -> std::io::Result<Box<dyn Stream>> {
    if let Some(path) = url.strip_prefix("unix://") {
        return Ok(Box::new(UnixStream::connect(path)?));
    }
    let address = url.trim_start_matches("tcp://").to_socket_addrs()?.next();
    let address = address.ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    Ok(Box::new(TcpStream::connect_timeout(&address, patience)?))
}

/// Status and body when the answer is whole; `closed` when no more will come.
fn parse(answer: &[u8], closed: bool) -> Option<(u16, String)> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let field = |name: &str| {
        let mut fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
        fields.find(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let body = &answer[end + 4..];
    let body = if field("transfer-encoding").is_some_and(|its| its.contains("chunked")) {
        chunks(body)?
    } else if let Some(length) = field("content-length") {
        body.get(..length.parse().ok()?)?.to_vec()
    } else if closed {
        body.to_vec()
    } else {
        return None;
    };
    Some((status, String::from_utf8_lossy(&body).into_owned()))
}

/// The body in chunks, when the last one is there.
fn chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 2 + size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_it_is_none() {
        let sized = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42";
        assert_eq!(parse(sized, false), Some((200, "42".into())));
        assert_eq!(parse(&sized[..sized.len() - 1], true), None);
        let chunked =
            b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n4\r\n1\r\n2\r\n0\r\n";
        assert_eq!(parse(chunked, false), Some((503, "42".into())));
        assert_eq!(parse(&chunked[..chunked.len() - 3], true), None);
        let open = b"HTTP/1.0 200 OK\r\n\r\n42";
        assert_eq!(parse(open, false), None);
        assert_eq!(parse(open, true), Some((200, "42".into())));
        assert_eq!(parse(b"nonsense\r\n\r\n", true), None);
    }
}
