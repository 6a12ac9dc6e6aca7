"""What becomes a term, by example."""

from __future__ import annotations

import pytest

from keymem_daemon.index.tokens import QueryToken, Tokenizer


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer()


def test_english_words_are_folded_and_stemmed_and_stop_words_are_out(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("The Apples were falling on Newton") == ["appl", "fall", "newton"]


def test_a_document_keeps_repetitions_and_a_query_does_not(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("apple Apple apples") == ["appl"] * 3
    assert tokenizer.query_terms("Apples apple") == [QueryToken("Apples", "appl")]


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("getUserName", "getusernam", {"user", "name"}),
        ("HTTPServer", "httpserver", {"http", "server"}),
        ("snake_case_name", "snake_case_name", {"snake", "case", "name"}),
        ("kebab-case-name", "kebab-case-name", {"kebab", "case", "name"}),
        ("collections.OrderedDict", "collections.ordereddict", {"collect", "order", "dict"}),
        ("src/main.py", "src/main.py", {"src", "main", "py"}),
        ("std::vector", "std::vector", {"std", "vector"}),
        ("owner@host.org", "owner@host.org", {"owner", "host", "org"}),
        ("AT&T", "at&t", {"t"}),
        ("python3", "python3", {"python"}),
    ],
)
def test_an_identifier_is_a_term_as_a_whole_and_in_parts(
    tokenizer: Tokenizer, text: str, whole: str, parts: set[str]
) -> None:
    terms = tokenizer.terms(f"see {text}.")
    assert whole in terms
    assert parts <= set(terms)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("1.2.3", "1.2.3"),
        ("v1.2.3-rc1", "v1.2.3-rc1"),
        ("v2", "v2"),
        ("#123", "#123"),
        ("a1b2c3d4e5", "a1b2c3d4e5"),
        ("3,000,000", "3000000"),
        ("12:30", "12:30"),
        ("C++", "c++"),
        ("C#", "c#"),
        ("k8s", "k8s"),
    ],
)
def test_versions_numbers_and_hashes_stay_whole(tokenizer: Tokenizer, text: str, term: str) -> None:
    assert tokenizer.terms(text)[0] == term
    assert term in tokenizer.terms(f"it was {text}, they said")


def test_a_hash_is_not_split_at_its_digits(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("deadbeef1234567") == ["deadbeef1234567"]


def test_a_version_is_found_with_and_without_its_v(tokenizer: Tokenizer) -> None:
    assert set(tokenizer.terms("1.2.3")) <= set(tokenizer.terms("v1.2.3"))


def test_possessives_and_contractions_leave_the_word(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("Caroline's dog didn't bark, they're fine") == tokenizer.terms("Caroline dog bark fine")
    assert tokenizer.terms("Caroline’s") == tokenizer.terms("Caroline's")


def test_initials_are_one_term(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("the U.S. army") == ["us", "armi"]
    assert tokenizer.terms("the US army") == ["us", "armi"]
    assert tokenizer.terms("they told us") == ["told"]


def test_accents_of_latin_letters_do_not_matter_and_other_marks_do(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("Malmö Café") == tokenizer.terms("malmo cafe")
    assert tokenizer.terms("हिन्दी") == ["हिन्दी"]


def test_decomposed_and_wide_text_equals_composed_and_narrow(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("Cafe\u0301") == tokenizer.terms("Café")
    assert tokenizer.terms("Ｐｙｔｈｏｎ") == tokenizer.terms("python")


def test_han_and_kana_give_pairs_of_characters_and_the_runs_that_look_like_words(tokenizer: Tokenizer) -> None:
    terms = tokenizer.terms("東京でデータベースを使う")
    assert {"東京", "データベース", "デー"} <= set(terms)
    assert tokenizer.terms("山") == ["山"]
    assert set(tokenizer.terms("北京")) <= set(tokenizer.terms("我喜欢在北京吃苹果"))


def test_a_pair_of_characters_from_the_middle_of_a_run_is_no_word(tokenizer: Tokenizer) -> None:
    words = {token.surface for token in tokenizer.analyze("データベース").tokens if token.word}
    assert words == {"データベース"}


def test_thai_gives_pairs_that_keep_marks_with_their_letters(tokenizer: Tokenizer) -> None:
    assert set(tokenizer.terms("สวัสดี")) & set(tokenizer.terms("สวัสดีครับ"))


def test_phrases_do_not_cross_stop_words_or_punctuation(tokenizer: Tokenizer) -> None:
    phrases = tokenizer.phrases("Where did Isaac Newton see the red apple, garden wall?")
    assert {"Isaac", "Newton", "Isaac Newton", "Isaac Newton see", "red apple", "garden wall"} <= set(phrases)
    assert "see red" not in phrases
    assert not any("apple" in phrase and "garden" in phrase for phrase in phrases)


def test_phrases_keep_the_written_form_without_the_possessive(tokenizer: Tokenizer) -> None:
    assert tokenizer.phrases("What is Caroline's Job?") == ["Caroline", "Job"]


def test_phrases_are_bounded(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.phrases(" ".join(f"word{n}" for n in range(1000)))) == 96
    assert max(len(phrase.split()) for phrase in tokenizer.phrases("one1 two2 three3 four4 five5 six6")) == 4


@pytest.mark.parametrize("text", ["", "   ", "\x00", "\ud800", "😀", "the of and", "?!…", "#", "'", "_", "__"])
def test_text_without_content_has_no_terms(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.terms(text) == [] or text == "😀"
    assert tokenizer.phrases(text) == []


def test_nul_and_lone_surrogates_separate_words(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("apple\x00pear\ud800plum") == ["appl", "pear", "plum"]


def test_the_memory_of_words_is_bounded_and_forgetting_changes_nothing(tokenizer: Tokenizer) -> None:
    before = tokenizer.analyze("getUserName walked")
    tokenizer.terms(" ".join(f"x{number}y" for number in range(50_000)))
    assert len(tokenizer._words._words) <= 20_000
    assert len(tokenizer._folded) <= 20_000
    assert tokenizer.analyze("getUserName walked") == before


def test_a_long_run_of_han_gives_its_pairs_as_phrases(tokenizer: Tokenizer) -> None:
    assert {"喜欢", "北京", "苹果"} <= set(tokenizer.phrases("我非常喜欢在北京吃苹果"))
    assert tokenizer.phrases("東京 タワー") == ["東京", "タワー"]


def test_a_long_text_is_read_in_short_steps() -> None:
    text = "Strawberries grow in long rows beside the harbour. " * 400
    assert sum(1 for _ in Tokenizer().analysis_steps([text])) >= len(text) // 2_500
