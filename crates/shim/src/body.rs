//! Standard input, as far as it belongs to the request.

use door::fastcgi::{self, kind};
use rustix::io::{Errno, read};
use rustix::stdio::stdin;

use crate::fault::Fault;
use crate::request::{ID, Length};

/// What is read at a time.
const PIECE: usize = 32 * 1024;

/// The rest of a body.
pub struct Body {
    /// None: up to the end of standard input.
    missing: Option<u64>,
    taken: u64,
    ended: bool,
}

impl Body {
    /// A body of which nothing has been read. One that is empty is told to the server at once.
    pub fn new(length: Length, out: &mut Vec<u8>) -> Body {
        let missing = match length {
            Length::Bytes(count) => Some(count),
            Length::UntilEnd => None,
        };
        let mut body = Body { missing, taken: 0, ended: false };
        if missing == Some(0) {
            body.end(out);
        }
        body
    }

    /// All of it has been read.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Nothing of it has been read.
    pub fn untouched(&self) -> bool {
        self.taken == 0
    }

    /// Nobody wants the rest.
    pub fn give_up(&mut self) {
        self.ended = true;
    }

    /// Appends to `out` what is there to read; waits if nothing is.
    ///
    /// A body that ends too early is nobody's request any more: its client has gone away.
    pub fn read(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut piece = [0; PIECE];
        let most = self.missing.map_or(PIECE as u64, |missing| missing.min(PIECE as u64));
        let count = match read(stdin(), &mut piece[..most as usize]) {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(self.cut(&error.to_string())),
        };
        match (count, self.missing) {
            (0, Some(_)) => return Err(self.cut("its end")),
            (0, None) => self.end(out),
            _ => {
                fastcgi::put_stream(out, kind::STDIN, ID, &piece[..count]);
                self.taken += count as u64;
                self.missing = self.missing.map(|missing| missing - count as u64);
                if self.missing == Some(0) {
                    self.end(out);
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        fastcgi::put_stream_end(out, kind::STDIN, ID);
        self.ended = true;
    }

    fn cut(&self, by: &str) -> Fault {
        let detail = format!("{by} came after {} bytes", self.taken);
        Fault::new("the request's body is shorter than its CONTENT_LENGTH")
            .status("400 Bad Request")
            .because(detail)
    }
}
