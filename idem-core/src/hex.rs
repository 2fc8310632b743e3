//! Bytes as digits.

use std::fmt;

/// Lower-case hexadecimal digits, two a byte. For hashes: the standard formatting of a number takes
/// longer than hashing a request does.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chunks(32).try_for_each(|bytes| {
            let mut digits = [0; 64];
            for (byte, pair) in bytes.iter().zip(digits.as_chunks_mut().0) {
                *pair = [digit(byte >> 4), digit(byte & 15)];
            }
            let (digits, _) = digits.split_at(2 * bytes.len());
            f.write_str(str::from_utf8(digits).unwrap_or_default())
        })
    }
}

const fn digit(half: u8) -> u8 {
    if half < 10 { b'0' + half } else { b'a' - 10 + half }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_two_digits_however_many_there_are() {
        for length in 0..100 {
            let bytes: Vec<u8> = (0..length).map(|at: u8| at.wrapping_mul(37) ^ 0xa5).collect();
            let digits = Hex(&bytes).to_string();
            assert_eq!(digits.len(), 2 * bytes.len());
            for (byte, at) in bytes.iter().zip((0..).step_by(2)) {
                assert_eq!(digits[at..at + 2], format!("{byte:02x}"));
            }
        }
    }
}
