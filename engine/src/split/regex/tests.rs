use super::{Cursor, Regex};
use crate::split::tests::random_text;
use fastrand::Rng;

/// Returns the pieces, and the largest number of steps.
fn walked(pattern: &str, text: &str) -> (Vec<String>, u64) {
    let regex = Regex::new(pattern).expect("a supported pattern");
    let mut cursor = Cursor::default();
    cursor.reset(&regex);
    let (mut pieces, mut from, mut steps) = (Vec::new(), 0, 0);
    while let Some(end) = cursor.next_end(&regex, text.as_bytes()) {
        pieces.push(text[from..end].to_owned());
        from = end;
        steps = steps.max(cursor.steps());
    }
    (pieces, steps)
}

/// Patterns that take exponential or quadratic time without memoization, and the text to repeat.
const HOSTILE: &[(&str, &str, &str)] = &[
    ("(a+)+$", "a", "b"),
    ("(a|a)*b", "a", ""),
    ("(a|aa)+$", "a", "b"),
    ("(.*)*x", "a", ""),
    (".*.*.*x", "a", ""),
    (".*a.*a.*x", "a", ""),
    (".*?x", "a", ""),
    ("a++b|a", "a", ""),
    ("(?:ab)*x", "ab", ""),
    ("(?>(?:ab)*)x", "ab", ""),
    ("(?>(?:a|ab)*)c|a|b", "ab", ""),
    ("(?:a*b)*c", "aaab", ""),
    (
        "(?:x?a*b)*c",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
        "",
    ),
    ("(?:(?:a|b)*c)*d", "abcab", ""),
    (r"\w(?=.*x)", "a", "x"),
    (r"\w(?=.*?x)", "a", "x"),
    (r"\w(?!(?:ab|a|b)*x)", "ab", ""),
    ("(?=(a+)+$)a|b", "a", "b"),
    ("(?=(?=.*y).*x)a|b", "ab", "xy"),
    ("(?:a(?=[ab]*+c))*x", "a", "c"),
    ("(?:a(?=[ab]*c))*x", "a", "c"),
    ("[ab]*?c(?=.*d)|.", "abc", ""),
    ("a{0,20}a{0,20}a{0,20}x", "a", ""),
    (r"(?:a|b|ab)*(?=(?:.*\n)*z)|.", "ab\n", ""),
    ("(?:é|éé)+$", "é", "b"),
    (r"\s+(?!\S)|\s+", " ", "x"),
];

#[test]
fn twice_the_text_takes_twice_the_steps() {
    for &(pattern, unit, tail) in HOSTILE {
        let steps = |bytes: usize| {
            let text = unit.repeat(bytes / unit.len()) + tail;
            let (pieces, steps) = walked(pattern, &text);
            assert_eq!(pieces.concat(), text);
            steps
        };
        let size = if cfg!(miri) { 200 } else { 20_000 };
        let (once, twice) = (steps(size), steps(2 * size));
        assert!(twice * 10 <= once * 22, "{pattern}: {once} and {twice}");
        assert!(twice <= 1000 * 2 * size as u64, "{pattern}: {twice}");
    }
}

#[test]
fn memoization_does_not_change_the_pieces() {
    let units = "a|b|ab|c|x|é| |\n|d|aaaaaaaaaaaaaaaaaaaaaaaa".split('|');
    let units: Vec<&str> = units.collect();
    let mut random = Rng::with_seed(20_261_120);
    let rounds = if cfg!(miri) { 1 } else { 300 };
    for &(pattern, _, _) in HOSTILE {
        let regex = Regex::new(pattern).expect("a supported pattern");
        for _ in 0..rounds {
            let text = random_text(&mut random, &units, 9);
            let ends = |remember: bool| {
                let mut cursor = Cursor::default();
                cursor.reset(&regex);
                if remember {
                    cursor.always_remember();
                }
                std::iter::from_fn(|| cursor.next_end(&regex, text.as_bytes())).collect()
            };
            let (plain, remembered): (Vec<usize>, Vec<usize>) = (ends(false), ends(true));
            assert_eq!(remembered, plain, "{pattern} {text:?}");
        }
    }
}
