//! Writes the table of character classes that `src/split/class.rs` reads.
//!
//! The classes are those of `regex-syntax`, which tiktoken uses too. So characters that a later
//! Unicode version assigns are split as the published tokenizers split them.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::{env, fs};

use regex_syntax::hir::{Class, HirKind};

/// Number of code points in a block.
const BLOCK: usize = 128;

/// Class numbers as in `class.rs`, and their members. If two match, the later one counts.
const CLASSES: [(u8, &str); 9] = [
    (1, r"[\p{Lu}\p{Lt}]"),
    (2, r"\p{Ll}"),
    (3, r"[\p{Lm}\p{Lo}]"),
    (4, r"\p{M}"),
    (5, r"\p{N}"),
    (6, r"\p{P}"),
    (7, r"\p{S}"),
    (8, r"\s"),
    (9, r"[\r\n]"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
    let mut classes = vec![0; char::MAX as usize + 1];
    for (number, pattern) in CLASSES {
        let hir = regex_syntax::parse(pattern)?;
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
            return Err(format!("{pattern} is no class").into());
        };
        for range in class.ranges() {
            classes[range.start() as usize..=range.end() as usize].fill(number);
        }
    }
    let mut places = HashMap::new();
    let (mut index, mut blocks) = (Vec::new(), Vec::new());
    for block in classes.chunks(BLOCK) {
        let place = *places.entry(block).or_insert_with(|| {
            blocks.extend_from_slice(block);
            blocks.len() / BLOCK - 1
        });
        index.push(u8::try_from(place)?);
    }
    // Padded to every possible index, so that lookups need no bounds check.
    blocks.resize(BLOCK << 8, 0);
    let folder = env::var("OUT_DIR")?;
    fs::write(Path::new(&folder).join("class_rows"), rows(&classes))?;
    fs::write(Path::new(&folder).join("class_index"), index)?;
    fs::write(Path::new(&folder).join("class_blocks"), blocks)?;
    Ok(())
}

/// Returns the rows of `class.rs`: three rows of 16 bytes for each 64 code points of up to three
/// bytes in UTF-8. A row has two sets of classes, one in each half of its bytes: bit h of half-byte
/// l is set if code point 16 h + l of the 64 is in the set.
fn rows(classes: &[u8]) -> Vec<u8> {
    let mut rows = Vec::new();
    for group in classes[..1 << 16].chunks(64) {
        for sets in [[&[1][..], &[2]], [&[3], &[4]], [&[5, 8, 9], &[]]] {
            rows.extend((0..16).map(|low| {
                let bits = (0..8).filter(|bit| sets[bit / 4].contains(&group[bit % 4 * 16 + low]));
                bits.map(|bit| 1 << bit).sum::<u8>()
            }));
        }
    }
    rows
}
