//! What became of a request.

/// Why a request got no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A status outside of 200 to 299.
    Status(u16),
    /// No complete answer in time.
    Timeout,
    /// There was no connection to be had.
    Refused,
    /// The connection ended before the answer did.
    Reset,
    /// Bytes that are no answer.
    Garbage,
}

impl Failure {
    /// True when the server did not answer at all: whoever asks again at once makes it a spin.
    pub fn is_broken(self) -> bool {
        !matches!(self, Self::Status(_))
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The connection, which is free again.
    pub conn: usize,
    /// Which of the kinds it was.
    pub kind: usize,
    /// When it should have been sent.
    pub due: u64,
    /// When it was.
    pub sent: u64,
    /// When its last byte came.
    pub end: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// Who answered, if the answer says so.
    pub worker: Option<u32>,
    /// 2xx, or why not.
    pub result: Result<(), Failure>,
}
