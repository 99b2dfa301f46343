//! As much of HTTP/1.1 as the server's answers need.

/// A response as it comes in.
#[derive(Default)]
pub struct Response {
    head: Vec<u8>,
    status: u16,
    framing: Framing,
    /// The body so far, decoded.
    pub body: Vec<u8>,
}

#[derive(Default, Clone, Copy)]
enum Framing {
    #[default]
    Head,
    Length(usize),
    /// Bytes left of the present chunk, and the end of line after it.
    Chunk(usize),
    ChunkLine,
    LastLine,
}

/// What the bytes so far amount to.
pub enum Progress {
    /// More is to come.
    More,
    /// A whole response of this status.
    Done(u16),
    /// Not HTTP.
    Garbage,
}

impl Response {
    /// Takes bytes in.
    pub fn feed(&mut self, mut input: &[u8]) -> Progress {
        loop {
            match self.framing {
                Framing::Head | Framing::ChunkLine | Framing::LastLine => {
                    let Some((&byte, rest)) = input.split_first() else { return Progress::More };
                    input = rest;
                    self.head.push(byte);
                    match self.line_or_head() {
                        None => return Progress::Garbage,
                        Some(true) => return self.end(input),
                        Some(false) => {}
                    }
                }
                Framing::Length(0) => return self.end(input),
                Framing::Length(left) => {
                    let Some(taken) = self.take(&mut input, left) else { return Progress::More };
                    self.framing = Framing::Length(left - taken);
                }
                Framing::Chunk(0) => {
                    self.body.truncate(self.body.len() - 2);
                    self.framing = Framing::ChunkLine;
                }
                Framing::Chunk(left) => {
                    let Some(taken) = self.take(&mut input, left) else { return Progress::More };
                    self.framing = Framing::Chunk(left - taken);
                }
            }
        }
    }

    fn end(&self, rest: &[u8]) -> Progress {
        if rest.is_empty() { Progress::Done(self.status) } else { Progress::Garbage }
    }

    fn take(&mut self, input: &mut &[u8], left: usize) -> Option<usize> {
        let (part, rest) = input.split_at(left.min(input.len()));
        self.body.extend_from_slice(part);
        *input = rest;
        (!part.is_empty()).then_some(part.len())
    }

    /// After a byte of something that ends with a line: true when the response is whole.
    fn line_or_head(&mut self) -> Option<bool> {
        match self.framing {
            Framing::Head if self.head.ends_with(b"\r\n\r\n") => self.parse_head()?,
            Framing::ChunkLine if self.head.ends_with(b"\r\n") => {
                let line = std::str::from_utf8(&self.head).ok()?.trim_end();
                let length = usize::from_str_radix(line, 16).ok()?;
                self.framing =
                    if length == 0 { Framing::LastLine } else { Framing::Chunk(length + 2) };
            }
            Framing::LastLine if self.head == b"\r\n" => return Some(true),
            _ => return (self.head.len() < 8192).then_some(false),
        }
        self.head.clear();
        Some(matches!(self.framing, Framing::Length(0)))
    }

    fn parse_head(&mut self) -> Option<()> {
        let head = std::str::from_utf8(&self.head).ok()?.to_ascii_lowercase();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.strip_prefix("http/1.1 ")?;
        self.status = status.get(..3)?.parse().ok()?;
        self.framing = Framing::Length(0);
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            match name {
                "content-length" => self.framing = Framing::Length(value.parse().ok()?),
                "transfer-encoding" => self.framing = Framing::ChunkLine,
                _ => {}
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Option<(u16, Vec<u8>)> {
        let mut response = Response::default();
        for (index, byte) in text.iter().enumerate() {
            match response.feed(&[*byte]) {
                Progress::More => assert!(index + 1 < text.len(), "unfinished"),
                Progress::Done(status) => return Some((status, response.body)),
                Progress::Garbage => return None,
            }
        }
        None
    }

    #[test]
    fn both_framings() {
        let plain = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(plain, Some((200, b"hello".to_vec())));
        let chunked =
            b"HTTP/1.1 502 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        assert_eq!(read(chunked), Some((502, b"hello".to_vec())));
        assert_eq!(read(b"HTTP/1.1 204 X\r\n\r\n"), Some((204, vec![])));
        assert_eq!(read(b"SSH-2.0\r\n\r\n"), None);
    }
}
