//! What a worker says to a front thread when it passes an fd: one SOCK_SEQPACKET packet with the fd
//! riding along, sent before the slot says anything that needs it. Nothing here does I/O.
//!
//! The pair outlives fronts and workers, so a packet may come late. The position is never given
//! twice, so whoever finds another one in the slot closes the fd and forgets the packet.

/// What the fd is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The file that a FILE frame names a part of.
    File = 1,
    /// The app's end of a hijacked connection is in the worker; this is the front's.
    Hijack = 2,
    /// A socket over which the worker awaits the request body's spool file.
    Body = 3,
}

/// Bytes of a packet.
pub const PACKET: usize = 13;

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// What the fd is.
    pub kind: Kind,
    /// The slot it belongs to.
    pub slot: u32,
    /// The request's place in the queue.
    pub position: u64,
}

impl Passed {
    /// As bytes.
    pub fn pack(self) -> [u8; PACKET] {
        let mut packet = [0; PACKET];
        packet[0] = self.kind as u8;
        packet[1..5].copy_from_slice(&self.slot.to_le_bytes());
        packet[5..].copy_from_slice(&self.position.to_le_bytes());
        packet
    }

    /// The inverse; None for what nobody of this version sends.
    pub fn parse(packet: &[u8]) -> Option<Passed> {
        let (kind, rest) = packet.split_first()?;
        let (slot, position) = rest.split_first_chunk::<4>()?;
        let kind = match kind {
            1 => Kind::File,
            2 => Kind::Hijack,
            3 => Kind::Body,
            _ => return None,
        };
        let slot = u32::from_le_bytes(*slot);
        let position = u64::from_le_bytes(position.try_into().ok()?);
        ((slot as usize) < crate::SLOTS).then_some(Passed { kind, slot, position })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        for kind in [Kind::File, Kind::Hijack, Kind::Body] {
            let passed = Passed { kind, slot: 4095, position: 1 << 43 | 7 };
            assert_eq!(Passed::parse(&passed.pack()), Some(passed));
        }
        let good = Passed { kind: Kind::File, slot: 1, position: 2 }.pack();
        for wrong in [&good[..12], &[&good[..], &[0]].concat(), &[&[4], &good[1..]].concat(), &[]] {
            assert_eq!(Passed::parse(wrong), None);
        }
        assert_eq!(
            Passed::parse(&Passed { slot: 4096, ..Passed::parse(&good).unwrap() }.pack()),
            None
        );
    }
}
