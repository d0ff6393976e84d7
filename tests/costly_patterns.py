"""Regular expressions that take for ever in a backtracking engine, and lines on which they do."""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

# What has brought services down, and what the literature names.
KNOWN = (
    r"^(a+)+$", r"(a|aa)+$", r"(a|a?)+$", r"(.*a){20}$", r"^(\w+\s?)*$", r"(x+x+)+y", r"([a-zA-Z]+)*$", r"(a*)*b",
    r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(.*)*=", r".*.*=.*", r"(?:.*,){30}x", r"\s+$", r"^[\s\u200c]+|[\s\u200c]+$",
    r"(\d+\.?)+!", r"(a+){3,}b", r"((a+)+)+$", r"(?:a|b|ab)*c", r"^(?:\w|\s)*$!", r"([^,]*,)*x", r"(\w*\d*)*$!",
    r"(a+)+\1$", r"(a*)*\1b", r"^(a|a?)+$(?!x)", r"(?=(a+)+$)a", r"(?<!x)(a+)+$", r"(\w+)\s\1\s\1+!", r"(a?){64}a{64}",
)  # fmt: skip
INNER = (
    "a+", "a*", r"\w+", "[a-z]+", ".+", "a|a", "a|aa", r"\w|\d|a", r"\s*", r"[^!]*", "a{1,9}", "a??",
    "(a+)b?", ".*a", r"\S+",
)  # fmt: skip
OUTER = (
    "({})+$", "({})*!", "^({})+[^a]$", r"({})+\1!", "(?=({})+$)a", "(?:({})+)+x(?!y)", "(?:{}){2,40}!",
    "({})*({})*({})*!",
    "(({})+)+$", "({})+(?<!b)$", "x*({})+y", r"^(?:({})+\s?)+$!", r"(({})*)*\2!",
)  # fmt: skip
COSTLY = (
    *KNOWN,
    *(outer.replace("{}", inner) for inner, outer in product(INNER, OUTER)),
)
BAIT = (b"a" * 27 + b"!", b"a" * 4000 + b"!", b"aaa bbb " * 400 + b"!", b"1.2.3." * 500 + b"?", b" " * 4000 + b"x")

_ATOMS = st.sampled_from(("a", "[ab]", r"\w", ".", "a|ab", "b?", r"\s", "[^b]"))
PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("+", "*", "{2,30}", "+?", "?"))).map(lambda made: f"(?:{made[0]}){made[1]}"),
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda made: f"({made[0]})*{made[1]}"),
    ),
    max_leaves=6,
)
