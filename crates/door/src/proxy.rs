//! The PROXY protocol, versions 1 and 2: the line or block with which a proxy begins a connection
//! to say whose it is (HAProxy's proxy-protocol.txt, sections 2.1 and 2.2).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest header of version 1 in bytes, its line end included.
pub const V1_MAX: usize = 107;
/// Longest header of version 2 in bytes that is taken. The protocol allows 64 KiB; what proxies
/// send, TLVs about certificates included, stays far below.
pub const V2_MAX: usize = 4096;

/// What every header of version 2 begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and transport, length.
const V2_FIXED: usize = 16;

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The proxy's own (a health check), or of a kind that has no addresses: the connection's real
    /// ends count.
    Local,
    /// Another's.
    Proxied {
        /// The client.
        source: SocketAddr,
        /// Where the client connected to.
        destination: SocketAddr,
    },
}

/// Why a connection does not begin with a PROXY header. Nothing of it can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It begins with something else.
    NoHeader,
    /// Version 1: no line end within `V1_MAX` bytes.
    EndlessLine,
    /// Version 1: a line of another shape.
    BadLine,
    /// Version 2: another version, command, family or transport.
    UnknownKind,
    /// Version 2: too short for its addresses.
    Truncated,
    /// Version 2: longer than `V2_MAX`.
    TooLong,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Fault::NoHeader => "the connection does not begin with a PROXY header",
            Fault::EndlessLine => "the PROXY line has no end within 107 bytes",
            Fault::BadLine => "the PROXY line is malformed",
            Fault::UnknownKind => "the PROXY header is of an unknown version, command or family",
            Fault::Truncated => "the PROXY header is too short for its addresses",
            Fault::TooLong => "the PROXY header is longer than 4096 bytes",
        })
    }
}

/// Reads the header at the beginning of `bytes`: what it says, and how many bytes it takes. None:
/// what has come so far may be the beginning of one, read on and ask again with all of it.
pub fn read(bytes: &[u8]) -> Result<Option<(Header, usize)>, Fault> {
    match bytes.first() {
        None => Ok(None),
        Some(b'P') => read_line(bytes),
        Some(b'\r') => read_block(bytes),
        Some(_) => Err(Fault::NoHeader),
    }
}

/// True if `bytes` and `start` agree as far as both go.
fn agrees(bytes: &[u8], start: &[u8]) -> bool {
    bytes.iter().zip(start).all(|(a, b)| a == b)
}

/// Version 1: `PROXY TCP4 SOURCE DESTINATION PORT PORT\r\n`.
fn read_line(bytes: &[u8]) -> Result<Option<(Header, usize)>, Fault> {
    if !agrees(bytes, b"PROXY ") {
        return Err(Fault::NoHeader);
    }
    let seen = &bytes[..bytes.len().min(V1_MAX)];
    let Some(end) = seen.iter().position(|c| *c == b'\n') else {
        return if seen.len() == V1_MAX { Err(Fault::EndlessLine) } else { Ok(None) };
    };
    let line = std::str::from_utf8(&seen[..end]).map_err(|_| Fault::BadLine)?;
    let line = line.strip_suffix('\r').ok_or(Fault::BadLine)?;
    let mut words = line.split(' ').skip(1);
    let family = words.next();
    if family == Some("UNKNOWN") {
        // What follows, if anything, is to be ignored.
        return Ok(Some((Header::Local, end + 1)));
    }
    let words: Vec<&str> = words.collect();
    let [source, destination, from, to] = words[..] else { return Err(Fault::BadLine) };
    let address = |text: &str| -> Option<IpAddr> {
        match family {
            Some("TCP4") => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            Some("TCP6") => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let whole = |host, number| Some(SocketAddr::new(address(host)?, port(number)?));
    let source = whole(source, from).ok_or(Fault::BadLine)?;
    let destination = whole(destination, to).ok_or(Fault::BadLine)?;
    Ok(Some((Header::Proxied { source, destination }, end + 1)))
}

/// A port as version 1 writes it: decimal, no sign, no leading zero.
fn port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|c| c.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

/// Version 2: a block of a fixed part, addresses and TLVs. The latter are skipped.
fn read_block(bytes: &[u8]) -> Result<Option<(Header, usize)>, Fault> {
    if !agrees(bytes, SIGNATURE) {
        return Err(Fault::NoHeader);
    }
    let Some((fixed, rest)) = bytes.split_at_checked(V2_FIXED) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    let (command, kind) = (fixed[12], fixed[13]);
    if V2_FIXED + length > V2_MAX {
        return Err(Fault::TooLong);
    }
    // Two addresses and two ports; UNSPEC and unix sockets have none that mean anything here.
    let needed = match (command, kind) {
        (0x20, _) | (0x21, 0x00) => 0,
        (0x21, 0x11) => 12,
        (0x21, 0x21) => 36,
        (0x21, 0x31) => 216,
        _ => return Err(Fault::UnknownKind),
    };
    if length < needed {
        return Err(Fault::Truncated);
    }
    let Some(block) = rest.get(..length) else { return Ok(None) };
    let header = match needed {
        12 => ends::<4>(block),
        36 => ends::<16>(block),
        _ => Header::Local,
    };
    Ok(Some((header, V2_FIXED + length)))
}

/// Source, destination and their ports, at the beginning of a block that is long enough.
fn ends<const N: usize>(block: &[u8]) -> Header
where
    IpAddr: From<[u8; N]>,
{
    let address = |at: usize| {
        let mut octets = [0; N];
        octets.copy_from_slice(&block[at..at + N]);
        IpAddr::from(octets)
    };
    let port = |at: usize| u16::from_be_bytes([block[at], block[at + 1]]);
    Header::Proxied {
        source: SocketAddr::new(address(0), port(2 * N)),
        destination: SocketAddr::new(address(N), port(2 * N + 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn proxied(source: &str, destination: &str) -> Header {
        Header::Proxied {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    fn block(command: u8, kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u16).to_be_bytes();
        [&SIGNATURE[..], &[command, kind], &length, payload].concat()
    }

    #[test]
    fn lines() {
        let line = b"PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\nGET / HTTP/1.1\r\n";
        let header = proxied("192.0.2.1:56324", "198.51.100.7:443");
        assert_eq!(read(line), Ok(Some((header, 45))));
        let line = b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n";
        assert_eq!(read(line), Ok(Some((proxied("[2001:db8::1]:1", "[::1]:65535"), line.len()))));
        for line in ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff::1 x 65535 y\r\n"] {
            assert_eq!(read(line.as_bytes()), Ok(Some((Header::Local, line.len()))));
        }
    }

    #[test]
    fn lines_of_another_shape() {
        for line in [
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 \r\n",
            "PROXY TCP4 1.2.3.4  5.6.7.8 1 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n",
            "PROXY TCP4 1.2.3.256 5.6.7.8 1 2\r\n",
            "PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n",
            "PROXY \r\n",
            "PROXY \u{e9}\r\n",
        ] {
            assert_eq!(read(line.as_bytes()), Err(Fault::BadLine), "{line:?}");
        }
        assert_eq!(read(&[b"PROXY UNKNOWN ", &[b'x'; 100][..]].concat()), Err(Fault::EndlessLine));
        let longest = [b"PROXY UNKNOWN ", &[b'x'; 91][..], b"\r\n"].concat();
        assert_eq!(read(&longest), Ok(Some((Header::Local, V1_MAX))));
        for other in [&b"GET / HTTP/1.1\r\n"[..], b"PROXX", b"PUT /", b"\r\n\r\n\0\r\nQUIX", b"\0"]
        {
            assert_eq!(read(other), Err(Fault::NoHeader));
        }
    }

    #[test]
    fn blocks() {
        let four = [192, 0, 2, 1, 198, 51, 100, 7, 0xdc, 4, 1, 0xbb];
        let header = proxied("192.0.2.1:56324", "198.51.100.7:443");
        let sent = block(0x21, 0x11, &four);
        assert_eq!(read(&sent), Ok(Some((header, 28))));
        // TLVs behind the addresses, and the request behind them.
        let sent =
            [block(0x21, 0x11, &[&four[..], &[4, 0, 1, 9]].concat()), b"GET".into()].concat();
        assert_eq!(read(&sent), Ok(Some((header, 32))));
        let mut six = [0; 36];
        (six[15], six[31], six[33], six[35]) = (1, 2, 3, 4);
        let header = proxied("[::1]:3", "[::2]:4");
        assert_eq!(read(&block(0x21, 0x21, &six)), Ok(Some((header, 52))));
        for local in [block(0x20, 0, &[]), block(0x20, 0x11, &four), block(0x21, 0, &[1, 2])] {
            assert_eq!(read(&local), Ok(Some((Header::Local, local.len()))));
        }
        assert_eq!(read(&block(0x21, 0x31, &[0; 216])), Ok(Some((Header::Local, 232))));
    }

    #[test]
    fn blocks_of_another_kind() {
        for (command, kind) in [(0x11, 0x11), (0x22, 0x11), (0x21, 0x12), (0x21, 0x41), (0, 0)] {
            assert_eq!(read(&block(command, kind, &[0; 36])), Err(Fault::UnknownKind));
        }
        assert_eq!(read(&block(0x21, 0x11, &[0; 11])), Err(Fault::Truncated));
        assert_eq!(read(&block(0x21, 0x21, &[0; 35])), Err(Fault::Truncated));
        assert_eq!(read(&block(0x20, 0, &[0; V2_MAX - 15])), Err(Fault::TooLong));
        assert!(matches!(read(&block(0x20, 0, &[0; V2_MAX - 16])), Ok(Some(_))));
    }

    /// Beginnings of headers, some whole, some not.
    fn anything() -> impl Strategy<Value = Vec<u8>> {
        let noise = prop::collection::vec(any::<u8>(), 0..64);
        let blocks = (any::<u8>(), any::<u8>(), noise.clone())
            .prop_map(|(command, kind, payload)| block(0x20 | (command % 3), kind, &payload));
        let lines = "PROXY (TCP4|TCP6|UNKNOWN)( [0-9.:]{0,9}){0,6}\r?\n?[a-z]{0,120}"
            .prop_map(String::into_bytes);
        prop_oneof![noise, blocks, lines]
    }

    proptest! {
        #[test]
        fn cut_anywhere_it_says_the_same(bytes in anything()) {
            let whole = read(&bytes);
            for cut in 0..bytes.len() {
                match read(&bytes[..cut]) {
                    Ok(None) => {}
                    early => prop_assert_eq!(&early, &whole),
                }
            }
            if let Ok(Some((_, taken))) = whole {
                prop_assert!(taken <= bytes.len() && taken <= V2_MAX);
            }
            // Nobody has to keep more than this to know.
            if bytes.len() >= V2_MAX {
                prop_assert!(whole != Ok(None));
            }
        }

        #[test]
        fn what_is_written_is_read(a in any::<[u8; 4]>(), b in any::<[u8; 16]>(), p: u16, q: u16) {
            let ends = [(IpAddr::from(a), 0x11, "TCP4"), (IpAddr::from(b), 0x21, "TCP6")];
            for (address, kind, word) in ends {
                let line = format!("PROXY {word} {address} {address} {p} {q}\r\n");
                let header = Header::Proxied {
                    source: SocketAddr::new(address, p),
                    destination: SocketAddr::new(address, q),
                };
                prop_assert_eq!(read(line.as_bytes()), Ok(Some((header, line.len()))));
                let octets = match address {
                    IpAddr::V4(_) => a.to_vec(),
                    IpAddr::V6(_) => b.to_vec(),
                };
                let ports = [p.to_be_bytes(), q.to_be_bytes()].concat();
                let sent = block(0x21, kind, &[&octets[..], &octets, &ports].concat());
                prop_assert_eq!(read(&sent), Ok(Some((header, sent.len()))));
            }
        }
    }
}
