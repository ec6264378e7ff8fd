//! The walk through a text: its added tokens, and the pieces between them.

use std::borrow::Cow;

use super::Pipeline;
use super::origins::{Aligned, Origins};
use super::pre_tokenise;
use crate::bpe::SpecialFound;
use crate::vocabulary::special::SpecialSet;

impl Pipeline {
    /// Call `give` with each added token and each piece of a text, until it returns false. Origins
    /// are known if `is_traced`, which takes longer.
    ///
    /// A disallowed special token is an error also if it occurs only in normalised text, and beyond
    /// what `give` wants; its offset is known if `is_traced`. The caller has checked the original
    /// text.
    pub(super) fn walk(
        &self,
        text: &str,
        allowed: &SpecialSet,
        disallowed: &SpecialSet,
        is_traced: bool,
        give: &mut impl FnMut(Found<'_>) -> bool,
    ) -> Result<(), SpecialFound> {
        let (as_it_came, normalised) = (&self.as_it_came, &self.normalised);
        let needs_all = !disallowed.is_empty();
        let (mut is_wanted, mut outcome) = (true, Ok(()));
        let found = as_it_came.each_part(text, allowed, disallowed, |part, token| {
            if let Some(id) = token {
                let last = text.floor_char_boundary(part.end - 1);
                is_wanted = is_wanted && give(Found::Token(id, part.start, last));
                return is_wanted || needs_all;
            }
            let traced;
            let (normal, origins) = if is_traced {
                let stretch = Aligned::original(text, part);
                traced = self.normalisers.apply_traced(stretch, text);
                (Cow::Borrowed(&*traced.text), Origins::of(&traced.starts))
            } else {
                let origins = Origins::untracked(part.start == 0);
                (self.normalisers.apply(&text[part]), origins)
            };
            let origin = |at: usize| origins.starts.map_or(0, |starts| starts[at]);
            let found = normalised.each_part(&normal, allowed, disallowed, |part, token| {
                let mut piece = |piece: &str, origins: Origins<'_>| {
                    give(Found::Piece(piece, origins.starts.unwrap_or_default()))
                };
                is_wanted = match token {
                    _ if !is_wanted => false,
                    Some(id) => give(Found::Token(id, origin(part.start), origin(part.end - 1))),
                    None => {
                        let origins = origins.part(part.clone());
                        let steps = &self.pre_tokenizers;
                        pre_tokenise::each_piece(steps, &normal[part], origins, &mut piece)
                    }
                };
                is_wanted || needs_all
            });
            outcome = found.map_err(|found| SpecialFound {
                byte_offset: origin(found.byte_offset),
                ..found
            });
            outcome.is_ok() && (is_wanted || needs_all)
        });
        outcome.and(found)
    }
}

/// What a walk finds. Without tracing, origins are 0 or empty.
pub(super) enum Found<'a> {
    /// An added token: its id, and the starts of its first and its last character.
    Token(u32, usize, usize),
    /// A piece, and the origin of each of its bytes.
    Piece(&'a str, &'a [usize]),
}
