//! Finds bytes in a stream.

/// The end of what was read so far, for a needle that continues in the next read.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    /// Whether the needle ends in `read`, which follows what was read before. The empty needle is
    /// everywhere.
    pub(super) fn finds(&mut self, needle: &[u8], read: &[u8]) -> bool {
        if needle.is_empty() {
            return true;
        }
        self.0.extend_from_slice(read);
        let found = self.0.windows(needle.len()).any(|window| window == needle);
        // Shorter than the needle, so that no occurrence is found twice.
        let rest = self.0.len().saturating_sub(needle.len() - 1);
        self.0.drain(..rest);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;

    #[test]
    fn a_needle_is_found_wherever_reads_divide_it() {
        let stream = b"..abab..";
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let mut tail = Tail::default();
                let found = [&stream[..first], &stream[first..second], &stream[second..]]
                    .map(|read| tail.finds(b"abab", read));
                assert_eq!(found.iter().filter(|&&found| found).count(), 1, "{first} {second}");
            }
        }
    }

    #[test]
    fn what_was_found_is_not_found_again() {
        let mut tail = Tail::default();
        assert!(tail.finds(b"ab", b"ab"));
        assert!(!tail.finds(b"ab", b"b"));
        assert!(!tail.finds(b"ab", b"."));
        assert!(tail.finds(b"a", b"a"));
        assert!(!tail.finds(b"a", b"."));
    }

    #[test]
    fn every_read_contains_the_empty_needle() {
        let mut tail = Tail::default();
        assert!(tail.finds(b"", b"x") && tail.finds(b"", b"y"));
    }
}
