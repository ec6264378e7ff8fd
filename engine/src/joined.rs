//! Bytes of tokens, joined: decoding is one copy of a fixed size for most tokens.

/// How many bytes are copied at once, of which the token is a part.
pub const WINDOW: usize = 16;

pub struct Joined {
    /// Anything past `len`.
    bytes: Vec<u8>,
    len: usize,
}

impl Joined {
    /// With room for what so many tokens usually are.
    pub fn for_tokens(count: usize) -> Self {
        Joined {
            bytes: vec![0; 5 * count + WINDOW],
            len: 0,
        }
    }

    /// Add the first `len` bytes of a window.
    #[inline(always)]
    pub fn push_window(&mut self, window: &[u8; WINDOW], len: usize) {
        if self.bytes.len() < self.len + WINDOW {
            self.grow(WINDOW);
        }
        self.bytes[self.len..self.len + WINDOW].copy_from_slice(window);
        self.len += len;
    }

    pub fn push(&mut self, token: &[u8]) {
        self.grow(token.len());
        self.bytes[self.len..self.len + token.len()].copy_from_slice(token);
        self.len += token.len();
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let needed = self.len + more;
        if needed > self.bytes.len() {
            self.bytes.resize((needed * 3 / 2).max(256), 0);
        }
    }

    pub fn into_vec(mut self) -> Vec<u8> {
        self.bytes.truncate(self.len);
        self.bytes
    }
}
