"""Laws of the tokenizer that hold for every text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.core.text import fold
from keymem_daemon.index.tokens import Tokenizer

ALPHABET = "abcXYZ019 ._-/\\#'’&@:+,\n\x00\ud800가나은는東京アの日กำไรé\u0301😀"
TEXTS = st.one_of(st.text(max_size=200), st.text(alphabet=ALPHABET, max_size=80))


@given(TEXTS)
def test_analysis_depends_on_the_text_alone(text: str) -> None:
    used = Tokenizer()
    used.analyze(text[::-1])
    assert used.analyze(text) == Tokenizer().analyze(text)


@given(TEXTS)
def test_a_query_has_the_terms_of_the_document_with_the_same_text(text: str) -> None:
    tokenizer = Tokenizer()
    assert [token.term for token in tokenizer.query_terms(text)] == list(dict.fromkeys(tokenizer.terms(text)))


@given(TEXTS)
def test_terms_are_folded_bounded_and_never_blank(text: str) -> None:
    for token in Tokenizer().analyze(text).tokens:
        assert token.term.strip()
        assert token.term == fold(token.term)
        assert token.surface == fold(token.surface)
        assert len(token.term) <= 256


@given(TEXTS)
def test_phrases_stand_in_the_text_and_differ(text: str) -> None:
    phrases = Tokenizer().phrases(text)
    assert len({fold(phrase) for phrase in phrases}) == len(phrases)
    flat = fold(text.replace("\x00", " ").replace("\ud800", " "))
    for phrase in phrases:
        assert fold(phrase) in flat


@given(st.lists(TEXTS, max_size=5))
def test_many_texts_are_analysed_as_each_alone(texts: list[str]) -> None:
    tokenizer = Tokenizer()
    assert tokenizer.analyze_many(texts) == [Tokenizer().analyze(text) for text in texts]
