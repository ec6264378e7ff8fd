//! The parts of a model, and what follows from them alone.

use super::decoder::is_dense;
use super::rule::Rule;
use super::split_points::Joined;
use super::units::Units;

/// The parts of a model; `pipeline/definition.py` says what each means.
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
    /// Whether what becomes of a character that is no token depends on what is beside it: it may
    /// vanish, so that its neighbours meet; join an unknown one before it; or wait, unknown, past
    /// others that are spelled in bytes.
    pub fn needs_known(&self) -> bool {
        self.byte_tokens.len() < 256
            && (self.unknown.is_none() || self.fuse_unknown || !self.byte_tokens.is_empty())
    }

    /// Where pieces can be cut; None where a part's ids may depend on what is beside it.
    pub fn joined(&self) -> Option<Joined> {
        let apart = matches!(&self.rule, Rule::Scores(_, apart) if !apart.is_empty());
        let affixed = !self.prefix.is_empty() || !self.suffix.is_empty();
        if self.units == Units::Bytes || affixed || (apart && self.needs_known()) {
            return None;
        }
        Some(Joined::of(
            self.tokens.iter().map(|(token, _)| token.as_slice()),
        ))
    }

    /// How many bytes each id stands for, as `Model::lengths` has them.
    pub fn lengths(&self) -> Box<[u32]> {
        if !self.prefix.is_empty() || !self.suffix.is_empty() {
            return Box::default();
        }
        let max_id = self.tokens.iter().map(|&(_, id)| id).max().unwrap_or(0);
        if !is_dense(self.tokens.len(), max_id) {
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
