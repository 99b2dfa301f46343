//! A GET, to ask a server something through whatever door it has: never for a figure.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use oribi_load::door::Door;
use oribi_load::plan::Request;
use oribi_load::{gateway, records};

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

/// Status and body of `path` at an address as [`Door::of`] knows them, on a connection of its own.
pub fn get(url: &str, path: &str, patience: Duration) -> Result<(u16, String), String> {
    let until = Instant::now() + patience;
    let failed = |error: std::io::Error| format!("{url}: {error}");
    let (door, place) = Door::of(url);
    let mut stream = connect(&place, patience).map_err(failed)?;
    stream.patience(patience).map_err(failed)?;
    stream.write_all(&request(door, path)).map_err(failed)?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(whole) = parse(door, &answer, false) {
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
    parse(door, &answer, true)
        .ok_or_else(|| format!("{url}{path}: closed before an answer was complete"))
}

fn request(door: Door, path: &str) -> Vec<u8> {
    let mut request = match door {
        Door::Http => {
            let head = "HTTP/1.1\r\nHost: localhost\r\nConnection: close";
            format!("GET {path} {head}\r\n\r\n").into_bytes()
        }
        Door::FastCgi | Door::Scgi => {
            let request = Request { path: path.into(), ..Request::default() };
            gateway::head(door, &request, "localhost", false)
        }
    };
    if door == Door::FastCgi {
        request.extend_from_slice(&gateway::body_header(0));
    }
    request
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
fn parse(door: Door, answer: &[u8], closed: bool) -> Option<(u16, String)> {
    if door == Door::FastCgi {
        // Its records say where it ends; what was in them is a CGI program's answer.
        return parse(Door::Scgi, &records::whole(answer)?, true);
    }
    let find = |end: &[u8]| answer.windows(end.len()).position(|its| its == end);
    let blank = find(b"\r\n\r\n").map(|at| (at, 4));
    let (end, length) =
        blank.or_else(|| Some((find(b"\n\n").filter(|_| door != Door::Http)?, 2)))?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let field = |name: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let status = match door {
        Door::Http => head.lines().next()?.split(' ').nth(1)?,
        _ => field("status").map_or("200", |status| status.get(..3).unwrap_or(status)),
    };
    let status = status.parse().ok()?;
    let body = &answer[end + length..];
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
        assert_eq!(parse(Door::Http, sized, false), Some((200, "42".into())));
        assert_eq!(parse(Door::Http, &sized[..sized.len() - 1], true), None);
        let chunked =
            b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n4\r\n1\r\n2\r\n0\r\n";
        assert_eq!(parse(Door::Http, chunked, false), Some((503, "42".into())));
        assert_eq!(parse(Door::Http, &chunked[..chunked.len() - 3], true), None);
        let open = b"HTTP/1.0 200 OK\r\n\r\n42";
        assert_eq!(parse(Door::Http, open, false), None);
        assert_eq!(parse(Door::Http, open, true), Some((200, "42".into())));
        assert_eq!(parse(Door::Http, b"nonsense\r\n\r\n", true), None);
    }

    #[test]
    fn a_gateway_answers_like_a_cgi_program() {
        let plain = b"Content-Type: text/plain\n\n42";
        assert_eq!(parse(Door::Scgi, plain, true), Some((200, "42".into())));
        assert_eq!(parse(Door::Scgi, plain, false), None);
        let status = b"Status: 503 No\r\nContent-Length: 2\r\n\r\nno";
        assert_eq!(parse(Door::Scgi, status, false), Some((503, "no".into())));
        let end = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0";
        let framed = [&[1, 6, 0, 1, 0, plain.len() as u8, 0, 0][..], plain, end].concat();
        assert_eq!(parse(Door::FastCgi, &framed, false), Some((200, "42".into())));
        assert_eq!(parse(Door::FastCgi, &framed[..framed.len() - 1], true), None);
    }
}
