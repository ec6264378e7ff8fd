//! A map from characters to symbols, in two array lookups.

use super::pair_merge::NO_SYMBOL;

const PAGE: usize = 256;
const PAGES: usize = 0x11_0000 / PAGE;

/// A map from characters to symbols.
pub struct CharTable {
    /// The start of each page of code points in `symbols`; 0 is the empty page.
    pages: Box<[u32]>,
    symbols: Vec<u32>,
}

impl CharTable {
    pub fn new(entries: impl IntoIterator<Item = (char, u32)>) -> Self {
        let mut table = CharTable {
            pages: vec![0; PAGES].into_boxed_slice(),
            symbols: vec![NO_SYMBOL; PAGE],
        };
        for (character, symbol) in entries {
            let page = &mut table.pages[character as usize / PAGE];
            if *page == 0 {
                *page = table.symbols.len() as u32;
                table.symbols.resize(table.symbols.len() + PAGE, NO_SYMBOL);
            }
            table.symbols[*page as usize + character as usize % PAGE] = symbol;
        }
        table
    }

    /// The symbol of a character, or `NO_SYMBOL`.
    #[inline(always)]
    pub fn get(&self, character: char) -> u32 {
        let page = self.pages[character as usize / PAGE];
        self.symbols[page as usize + character as usize % PAGE]
    }
}
