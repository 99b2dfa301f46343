//! Where the memory allocator finds room. A process that has loaded an app has freed much of what it
//! needed meanwhile, in small pieces between what stays, and the allocator hands those out first. To a
//! fork each piece is a page that the kernel must copy; memory in one run is a few pages.

use std::hint::black_box;

/// What glibc keeps at hand for each thread: so many blocks of each of these sizes.
const AT_HAND: usize = 7;
const SIZES_AT_HAND: std::ops::RangeInclusive<usize> = 32..=1040;
const STEP: usize = 16;
/// Sizes of holes, bytes as the allocator counts them, and what it adds to each block.
const SIZES: [usize; 8] = [4096, 2048, 1024, 512, 256, 128, 64, 32];
const HEAD: usize = 8;
/// Blocks in a row that show all holes of a size to be filled: one that could hold two is filled
/// with larger ones before.
const ROW: usize = 8;
/// More than that is not spent, bytes.
const MOST: usize = 64 << 20;

/// Takes all small free pieces, for good; what is allocated then comes in runs. No memory is written
/// but the allocator's own. Returns how many bytes were taken.
pub fn fill() -> usize {
    let mut taken = 0;
    let mut take = |size: usize| {
        taken += size;
        let block: Vec<u8> = Vec::with_capacity(size - HEAD);
        // Seen from outside, so that the compiler cannot do without it.
        black_box(block.leak()).as_ptr() as usize
    };
    for size in SIZES_AT_HAND.step_by(STEP) {
        (0..AT_HAND).for_each(|_| _ = take(size));
    }
    for size in SIZES {
        let (mut row, mut before) = (0, 0);
        for _ in 0..MOST / SIZES.len() / size {
            let at = take(size);
            row = if at == before + size { row + 1 } else { 0 };
            before = at;
            if row == ROW {
                break;
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn pages(blocks: &[Vec<u8>]) -> usize {
        blocks.iter().map(|block| block.as_ptr() as usize / 4096).collect::<HashSet<_>>().len()
    }

    #[test]
    fn what_comes_after_lies_close_together() {
        let some =
            || (0..64).map(|i| Vec::with_capacity(40 + i % 8 * 40)).collect::<Vec<Vec<u8>>>();
        // Every ninth of many blocks is freed again, those of eight sizes.
        let all: Vec<Vec<u8>> = (0..40_000).map(|i| Vec::with_capacity(40 + i % 8 * 40)).collect();
        let (holes, kept): (Vec<_>, Vec<_>) =
            all.into_iter().enumerate().partition(|(i, _)| i % 9 == 0);
        drop(holes);
        let scattered = some();
        assert!(pages(&scattered) > 12, "there are holes: {}", pages(&scattered));
        let taken = fill();
        assert!(taken < 4 << 20, "{taken} bytes");
        let close = some();
        assert!(pages(&close) <= 8, "{} pages", pages(&close));
        drop((kept, scattered));
    }
}
