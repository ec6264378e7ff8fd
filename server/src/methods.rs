//! The RPCs: their kinds and properties.

/// Whether request and answer are one message or a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unary,
    ServerStream,
    ClientStream,
    BidiStream,
}

/// One RPC.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    pub number: usize,
    pub kind: Kind,
    /// Whether GET may call it.
    pub has_no_side_effects: bool,
    /// Whether its messages have at most `SMALL_BYTES`, compressed and inflated.
    pub is_small: bool,
}
