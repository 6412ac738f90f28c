"""Patterns of Java's: what java.util.regex.Pattern says of them without flags, and what is refused for being unlike."""

from __future__ import annotations

import pickle
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.errors import IllegalOptionError
from tablefeed.feed.changes.java_regex import java_regex

Verdict = Literal["found", "not found"]
FOUND: Verdict = "found"
NOT_FOUND: Verdict = "not found"


def finds(pattern: str, text: str) -> bool:
    return java_regex(pattern, option="excludeRegex").finds(text)


def refused(pattern: str) -> IllegalOptionError:
    with pytest.raises(IllegalOptionError) as caught:
        java_regex(pattern, option="excludeRegex")
    assert (caught.value.option, caught.value.value) == ("excludeRegex", pattern)
    return caught.value


@pytest.mark.parametrize(
    ("pattern", "text", "verdict"),
    [
        ("", "part-00000.parquet", FOUND),
        (r"\.parquet$", "part-00000.parquet", FOUND),
        (r"^part", "day=1/part-00000.parquet", NOT_FOUND),
        ("part-0000[02468]", "part-00003-a.parquet", NOT_FOUND),
        ("day=(mon|tue)/", "day=tue/x", FOUND),
        ("day=(?:mon|tue)/", "day=wed/x", NOT_FOUND),
        ("day=(?<day>m.n)/", "day=mon/x", FOUND),
        ("a|", "x", FOUND),
        ("x{2,3}y", "axxy", FOUND),
        ("x{2,}y", "axy", NOT_FOUND),
        ("^x{2}?$", "xx", FOUND),
        ("^x*+x", "xxx", NOT_FOUND),
        ("^(?>x*)x", "xxx", NOT_FOUND),
        ("^x*?x$", "xxx", FOUND),
        ("x(?=y)", "xz", NOT_FOUND),
        ("x(?!y)", "xz", FOUND),
        ("(?<=w)x", "wx", FOUND),
        ("(?<!w)x", "wx", NOT_FOUND),
        ("(?i)PART-É", "part-É", FOUND),
        ("(?i)PART-É", "part-é", NOT_FOUND),
        ("x(?i:Y)z", "xyz", FOUND),
        ("x(?i:Y)z", "xyZ", NOT_FOUND),
        ("(?i)[Z-a]", "A", FOUND),
        ("(?i)k", "\u212a", NOT_FOUND),
        (r"\d", "٣", NOT_FOUND),
        (r"\D", "٣", FOUND),
        (r"\w", "é", NOT_FOUND),
        (r"^\w+$", "aZ_9", FOUND),
        (r"\s", "a\x0bb", FOUND),
        (r"\s", "a\u00a0b", NOT_FOUND),
        (r"\S", "\u2003", FOUND),
        (r"\bday\b", "a=day/x", FOUND),
        (r"\bday\b", "a_day/x", NOT_FOUND),
        (r"day\B", "day=1", NOT_FOUND),
        ("a.b", "a\nb", NOT_FOUND),
        ("a.b", "a\rb", NOT_FOUND),
        ("a.b", "a\x85b", NOT_FOUND),
        ("a.b", "a\u2028b", NOT_FOUND),
        ("a.b", "a\x0bb", FOUND),
        ("a.b", "a\U0001f600b", FOUND),
        ("a$", "a\n", FOUND),
        ("a$", "a\r", FOUND),
        ("a$", "a\r\n", FOUND),
        ("a\r$", "a\r\n", NOT_FOUND),
        ("a$", "a\u2029", FOUND),
        ("a$", "a\n\n", NOT_FOUND),
        ("a$", "a\nb", NOT_FOUND),
        (r"a\Z", "a\x85", FOUND),
        (r"a\z", "a\n", NOT_FOUND),
        (r"\Aa\z", "a", FOUND),
        ("^b", "a\nb", NOT_FOUND),
        (r"\x41\u0042\t\e\a\f", "AB\t\x1b\x07\x0c", FOUND),
        (r"a\-\/\_\%\{\}\]b", "a-/_%{}]b", FOUND),
        ("}]", "a}]", FOUND),
        ("a b#c", "a b#c", FOUND),
        ("[a-c]", "b", FOUND),
        ("[a-c]d", "bd", FOUND),
        ("[a-]bc", "-bc", FOUND),
        ("[a-]bc", "-c", NOT_FOUND),
        ("[^a-c]", "b", NOT_FOUND),
        ("[^a]", "\n", FOUND),
        ("[-a]", "-", FOUND),
        ("[a-]", "-", FOUND),
        (r"[\w-]", "-", FOUND),
        (r"[\]\[\\^]", "^", FOUND),
        ("[a^]", "^", FOUND),
        ("[.$|()*+?{}]", "x", NOT_FOUND),
        ("[a&b]", "&", FOUND),
        (r"[\d\s]", "x", NOT_FOUND),
    ],
)
def test_a_pattern_finds_what_it_finds_in_java(pattern: str, text: str, verdict: Verdict) -> None:
    assert finds(pattern, text) is (verdict == FOUND)


NO_REGEX = r"""
( ) a) (a [ [a [^a *a + ? a** a*?? (*a) a|* (|+) { a{ a{x} a{,3} a{3,2} a{2 a{4294967296} [b-a] \ a\
\y \i \_\l \xZZ \x4 \u12 [\b] [\A] (? (?P<n>a) (?P=n) (?#a) (?<1>a) (?<a_b>c) (?<>a) (?<n>a)(?<n>b)
(?(1)a) (?q)a
"""


@pytest.mark.parametrize("pattern", [*NO_REGEX.split(), "a{ 2}", "a{" + "9" * 5000 + "}"])
def test_what_java_does_not_compile_is_a_syntax_error_of_delta_sparks_class(pattern: str) -> None:
    assert refused(pattern).error_class == "DELTA_REGEX_OPT_SYNTAX_ERROR"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"\p{Alpha}", r"has \p: write the characters out"),
        (r"\PL", r"has \P"),
        (r"\Qa.b\E", r"put a backslash before each"),
        (r"a\hb", r"has \h: write the characters out, such as [A-Za-z] or [ \t]"),
        (r"\H", r"\H"),
        (r"\v", r"\v"),
        (r"[\V]", r"\V"),
        (r"\R", r"\R"),
        (r"\X", r"\X"),
        (r"\N{DASH}", r"\N"),
        (r"\Ga", r"\G"),
        (r"\cA", r"has \c: write \x and two digits"),
        (r"(a)\1", "back reference"),
        (r"(?<n>a)\k<n>", "back reference"),
        (r"\07", r"write \x and two digits"),
        (r"\x{41}", r"write \x and two digits"),
        (r"\ud83d\ude00", "surrogate"),
        ("[a[b]]", "one pair of brackets"),
        ("[a&&b]", "&&"),
        ("[a&&[^b]]", "&&"),
        ("[]a]", r"write \]"),
        ("[^]a]", r"write \]"),
        ("[a-c-e]", r"write \-"),
        ("[!--]", r"write \-"),
        (r"[\d-x]", r"write \-"),
        (r"[a-\d]", r"write \-"),
        ("(?i)[a-é]", "beyond ASCII"),
        ("a(?i)b", "flag"),
        ("(?s)a", "flag"),
        ("(?x)a b", "flag"),
        ("(?m)^a", "flag"),
        ("(?-i)a", "flag"),
        ("(?iu:a)", "flag"),
        ("^*", "can match the empty text"),
        ("$?", "can match the empty text"),
        (r"\b+", "can match the empty text"),
        ("(?=a)*", "can match the empty text"),
        ("(a*)*", "can match the empty text"),
        ("(a|b?)+", "can match the empty text"),
        ("(?:a{0,3}){2}", "can match the empty text"),
        ("{2}", "count follows nothing"),
        ("a{2}{3}", "count follows nothing"),
        ("(?<=a{1,2})b", "look-behind"),
        ("(?<=a|bc)d", "look-behind"),
        ("(?<=a+)b", "look-behind"),
        ("(?<!(x|a*))b", "look-behind"),
        ("(?<=a{2,})b", "look-behind"),
        ("(" * 60 + "a" + ")" * 60, "nested"),
    ],
)
def test_what_python_would_not_read_alike_is_refused_with_the_words_to_write_instead(pattern: str, said: str) -> None:
    error = refused(pattern)

    assert error.error_class == "DELTA_ILLEGAL_OPTION"
    assert said in error.message


def test_word_bounds_beyond_ascii_are_refused_where_they_are_met_for_javas_differ() -> None:
    pattern = java_regex(r"\bday", option="excludeRegex")

    assert pattern.finds("a/day=%C3%A9")
    with pytest.raises(IllegalOptionError, match=r"'excludeRegex'.*Javas"):
        pattern.finds("é/day=1")


def test_a_pattern_crosses_to_another_process() -> None:
    crossed = pickle.loads(pickle.dumps(java_regex("a.b", option="excludeRegex")))  # noqa: S301 - our own bytes

    assert crossed.finds("xaxbx")


PARTS = r"a b - = / . ^ $ | ( ) (?: (?i) [ ] [^ * + ? {2} { } \d \. \ & a-b (?= (?<= (?<n>"
PATTERNS = st.lists(st.sampled_from(PARTS.split()), max_size=12)


@given(PATTERNS.map("".join) | st.text(max_size=20), st.text(alphabet="ab-=/.19é^$[]{}", max_size=12))
def test_any_text_is_a_pattern_or_our_error_and_where_python_reads_it_as_it_stands_it_finds_the_same(
    pattern: str, text: str
) -> None:
    try:
        found = finds(pattern, text)
    except IllegalOptionError:
        return
    try:
        assert found is bool(re.search(pattern, text, re.ASCII))
    except re.error:
        assert "(?<" in pattern or "\\" in pattern  # a named group, or an escape that only Java has
