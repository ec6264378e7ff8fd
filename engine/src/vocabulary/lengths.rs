//! Token lengths, to avoid looking up byte strings that cannot be tokens.

/// Maximum length in bytes of all tokens, and of the tokens that begin, or end, with two given
/// bytes.
pub struct Lengths {
    longest: usize,
    from: Box<[u32]>,
    to: Box<[u32]>,
}

impl Lengths {
    pub fn of<'t>(tokens: impl Iterator<Item = &'t [u8]>) -> Self {
        let none = || vec![1; 1 << 16].into_boxed_slice();
        let (mut longest, mut from, mut to) = (0, none(), none());
        for token in tokens {
            longest = longest.max(token.len());
            if let (Some(&first), Some(&last)) = (token.first_chunk(), token.last_chunk()) {
                for of in [&mut from[pair(first)], &mut to[pair(last)]] {
                    *of = (*of).max(u32::try_from(token.len()).unwrap_or(u32::MAX));
                }
            }
        }
        Lengths { longest, from, to }
    }

    /// Returns the maximum length of a token.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns an upper bound of the length of tokens inside `bytes`; at least 1.
    pub fn longest_in(&self, bytes: &[u8]) -> usize {
        let pairs = bytes
            .windows(2)
            .map(|two| self.from[pair([two[0], two[1]])]);
        pairs.max().map_or(1, |most| most as usize)
    }

    /// Returns an upper bound of the length of tokens that `bytes` start with.
    pub fn longest_from(&self, bytes: &[u8]) -> usize {
        let most = bytes.first_chunk().map_or(1, |&two| self.from[pair(two)]);
        bytes.len().min(most as usize)
    }

    /// Returns an upper bound of the length of tokens that `bytes` end with.
    pub fn longest_to(&self, bytes: &[u8]) -> usize {
        let most = bytes.last_chunk().map_or(1, |&two| self.to[pair(two)]);
        bytes.len().min(most as usize)
    }
}

/// Returns the index of two bytes among all pairs.
#[inline(always)]
pub fn pair(two: [u8; 2]) -> usize {
    usize::from(u16::from_be_bytes(two))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_tokens() {
        let tokens = ["a", "b", "c", "ab", "abc", "cab"].map(str::as_bytes);
        let lengths = Lengths::of(tokens.into_iter());
        assert_eq!(lengths.longest(), 3);
        let from = ["", "a", "ab", "abab", "ba"].map(|text| lengths.longest_from(text.as_bytes()));
        assert_eq!(from, [0, 1, 2, 3, 1]);
        let within = ["", "a", "ba", "bca", "aabc"].map(|text| lengths.longest_in(text.as_bytes()));
        assert_eq!(within, [1, 1, 1, 3, 3]);
        let to = ["", "c", "bc", "ccab", "aa"].map(|text| lengths.longest_to(text.as_bytes()));
        assert_eq!(to, [0, 1, 2, 3, 1]);
    }
}
