//! The definition of a model, and its derived properties.

use super::decoder::is_dense;
use super::rule::Rule;
use super::split_points::Joined;
use super::units::Units;

/// The definition of a model; `pipeline/definition.py` describes the fields.
pub struct Parts {
    pub tokens: Vec<(Vec<u8>, u32)>,
    pub rule: Rule,
    pub units: Units,
    pub whole_first: bool,
    pub byte_tokens: Vec<(u8, u32)>,
    pub unknown: Option<u32>,
    pub fuse_unknown: bool,
    pub prefix: String,
    pub suffix: String,
}

impl Parts {
    /// Whether the result of a character without a token depends on adjacent characters: it may be
    /// dropped, so that they become adjacent; be fused with an unknown one before it; or be emitted
    /// after byte tokens that follow it.
    pub fn needs_known(&self) -> bool {
        self.byte_tokens.len() < 256
            && (self.unknown.is_none() || self.fuse_unknown || !self.byte_tokens.is_empty())
    }

    /// The pairs of characters within tokens, which determine split points in pieces; None if the
    /// ids of a part may depend on adjacent parts.
    pub fn joined(&self) -> Option<Joined> {
        let apart = matches!(&self.rule, Rule::Scores(_, apart) if !apart.is_empty());
        let affixed = !self.prefix.is_empty() || !self.suffix.is_empty();
        if self.units == Units::Bytes || affixed || (apart && self.needs_known()) {
            return None;
        }
        let tokens = self.tokens.iter().map(|(token, _)| token.as_slice());
        Some(Joined::of(tokens))
    }

    /// The number of bytes of each id; see `Model::lengths`.
    pub fn lengths(&self) -> Box<[u32]> {
        let affixed = !self.prefix.is_empty() || !self.suffix.is_empty();
        let max_id = self.tokens.iter().map(|&(_, id)| id).max().unwrap_or(0);
        if affixed || !is_dense(self.tokens.len(), max_id) {
            return Box::default();
        }
        let mut lengths = vec![0; max_id as usize + 1].into_boxed_slice();
        for (token, id) in &self.tokens {
            lengths[*id as usize] = token.len() as u32;
        }
        let stand_ins = self.byte_tokens.iter().map(|&(_, id)| id);
        for id in stand_ins.chain(self.unknown) {
            if let Some(length) = lengths.get_mut(id as usize) {
                *length = 0;
            }
        }
        lengths
    }
}
