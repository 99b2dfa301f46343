//! Which seats of the segment are whose. A worker gets a block of as many seats as it has threads.

/// Blocks of seats, lowest first, so that the part of the bitmaps people look at stays short.
#[derive(Clone, Debug)]
pub struct Seats {
    threads: u16,
    taken: Vec<bool>,
}

impl Seats {
    /// `seats` seats, handed out in blocks of `threads`.
    pub fn new(seats: u16, threads: u16) -> Seats {
        Seats { threads, taken: vec![false; usize::from(seats / threads.max(1))] }
    }

    /// The lowest free block's first seat.
    pub fn take(&mut self) -> Option<u16> {
        let block = self.taken.iter().position(|taken| !taken)?;
        self.taken[block] = true;
        Some(block as u16 * self.threads)
    }

    /// Gives a block back, once its worker is dead and settled.
    pub fn give_back(&mut self, seat: u16) {
        self.taken[usize::from(seat / self.threads)] = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_block_is_taken() {
        let mut seats = Seats::new(10, 3);
        assert_eq!([seats.take(), seats.take(), seats.take()], [Some(0), Some(3), Some(6)]);
        assert_eq!(seats.take(), None);
        seats.give_back(3);
        assert_eq!([seats.take(), seats.take()], [Some(3), None]);
    }
}
