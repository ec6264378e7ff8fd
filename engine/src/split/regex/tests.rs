use super::{Cursor, Regex};
use crate::random::Random;

fn pieces(pattern: &str, text: &str) -> Vec<String> {
    walked(pattern, text).0
}

/// Returns the pieces, and the largest number of steps.
fn walked(pattern: &str, text: &str) -> (Vec<String>, u64) {
    let regex = Regex::new(pattern).expect("a supported pattern");
    let mut cursor = Cursor::new();
    cursor.reset(&regex);
    let (mut pieces, mut from, mut steps) = (Vec::new(), 0, 0);
    while let Some(end) = cursor.next_end(&regex, text.as_bytes()) {
        pieces.push(text[from..end].to_owned());
        from = end;
        steps = steps.max(cursor.steps());
    }
    (pieces, steps)
}

#[test]
fn unmatched_text_is_a_piece() {
    assert_eq!(pieces("[a-z]+", "ab, cd!"), ["ab", ", ", "cd", "!"]);
    assert_eq!(pieces("x", "é中"), ["é中"]);
    assert!(pieces("x", "").is_empty());
}

#[test]
fn the_first_branch_wins_unless_it_is_empty() {
    assert_eq!(pieces("a|ab", "abab"), ["a", "b", "a", "b"]);
    assert_eq!(pieces("(?:|a)b?", "ab"), ["ab"]);
    assert_eq!(pieces("a*?", "aaa"), ["a", "a", "a"]);
}

#[test]
fn possessive_repeats_do_not_backtrack() {
    assert_eq!(pieces("a++ab|b", "aab"), ["aa", "b"]);
    assert_eq!(pieces("(?>a|ab)c|b", "abc"), ["a", "b", "c"]);
    assert_eq!(pieces("a{1,2}+ab", "aab"), ["aab"]);
    assert_eq!(pieces(r"\s+(?!\S)|\s", "   x"), ["  ", " ", "x"]);
}

#[test]
fn each_line_splits_the_pieces_of_the_one_before_it() {
    assert_eq!(pieces("b+\n^a|[^b]", "aabba"), ["a", "a", "bb", "a"]);
}

#[test]
fn assertions_see_their_own_piece() {
    assert_eq!(pieces("b+\n(?<=b)a|a$|a", "aba"), ["a", "b", "a"]);
    assert_eq!(pieces(r"a$|\n", "a\na\n"), ["a", "\n", "a", "\n"]);
    assert_eq!(pieces(r"\Aa|a\Z", "aaa"), ["a", "a", "a"]);
    assert_eq!(pieces(r"\b", "a b"), ["a b"]);
    assert_eq!(pieces(r"(?m:^a)|b", "aa\nab"), ["a", "a\n", "a", "b"]);
}

#[test]
fn unsupported_syntax_is_rejected_with_its_position() {
    for (pattern, position) in [
        (r"ab\1", 2),
        (r"(a)\g<1>", 3),
        ("a(?i)b", 1),
        ("(?x)a", 2),
        ("a{1,2", 1),
        ("ab{e<=1}", 2),
        ("x[a&&b]", 3),
        ("x[[a]]", 2),
        (r"a\K", 1),
        (r"é\p{Nope}", 1),
        ("(?<=a+)b", 0),
        ("a(?:|b)*", 7),
        ("(?|a|b)", 0),
        ("a\nb\n\\X", 4),
        (r"(?i:[\p{L}\d])", 5),
        ("x\n(?i:c)d?|[^ab]e", 2),
        (r"(?i:c)?\P{Lu}", 0),
        ("a(b", 1),
        ("ab)", 2),
        ("a**", 2),
        ("^*", 0),
        ("a{2000}", 2),
        ("(?:ab){1000}{1000}", 12),
    ] {
        let fault = Regex::new(pattern).err().expect(pattern);
        assert_eq!(fault.position, position, "{pattern}: {}", fault.problem);
    }
    assert!(Regex::new("(?:(?:ab){200}){200}").is_err());
    assert!(Regex::new(&"(".repeat(100_000)).is_err());
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
    let units = [
        "a",
        "b",
        "ab",
        "c",
        "x",
        "é",
        " ",
        "\n",
        "d",
        "aaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    let mut random = Random::new(20_261_120);
    let rounds = if cfg!(miri) { 1 } else { 300 };
    for &(pattern, _, _) in HOSTILE {
        let regex = Regex::new(pattern).expect("a supported pattern");
        for _ in 0..rounds {
            let parts = random.below(9);
            let text: String = (0..parts)
                .map(|_| units[random.below(units.len())])
                .collect();
            let ends = |remember: bool| {
                let mut cursor = Cursor::new();
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
