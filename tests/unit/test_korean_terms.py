"""Hangul: what Kiwi gives, what the fallback gives, and how one follows the other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keymem_daemon.index.korean import (
    KiwiApart,
    KiwiHere,
    KoreanAnalyzer,
    Morpheme,
    ProcessNotStartedError,
    start_engine,
)
from keymem_daemon.index.lexical import LexicalIndex
from keymem_daemon.index.particles import bare_noun
from keymem_daemon.index.tokens import Tokenizer

SENTENCE = "동건이는 파이썬으로 데이터베이스를 만들었다"


@pytest.fixture(scope="module")
def korean() -> Iterator[KoreanAnalyzer]:
    analyzer = KoreanAnalyzer()
    loaded = threading.Event()
    analyzer.when_ready(loaded.set)
    analyzer.load()
    assert loaded.wait(60), analyzer.failure
    yield analyzer
    analyzer.close()


@pytest.fixture
def tokenizer(korean: KoreanAnalyzer) -> Tokenizer:
    return Tokenizer(korean)


class _Silent:
    """An analyser that loads at once and then has no answer."""

    def analyse(self, texts: Sequence[str]) -> list[list[Morpheme]]:
        raise OSError(f"no answer to {len(texts)} texts")

    def close(self) -> None:
        """Nothing to let go of."""


def test_particles_and_endings_are_no_terms(tokenizer: Tokenizer) -> None:
    assert set(tokenizer.terms(SENTENCE)) - {"동", "건"} == {"동건", "파이썬", "데이터베이스", "만들다"}


def test_a_name_that_kiwi_takes_apart_is_found_as_written(tokenizer: Tokenizer) -> None:
    assert "동건" in tokenizer.terms("동건이는 어디 살아?")
    assert "동건" in tokenizer.phrases("동건이는 어디 살아?")


def test_the_informal_name_meets_the_plain_one(tokenizer: Tokenizer) -> None:
    assert "하은" in tokenizer.terms("하은이가 지우랑 놀았다")


def test_latin_words_with_particles_are_latin_words(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("React와 Next.js로") == ["react", "next.js", "next", "js"]


def test_a_compound_is_found_whole_and_by_its_parts(tokenizer: Tokenizer) -> None:
    assert {"데이터베이스서버", "데이터베이스", "서버"} <= set(tokenizer.terms("데이터베이스서버를 재시작했다"))


def test_a_number_stays_with_what_it_counts(tokenizer: Tokenizer) -> None:
    assert "3월" in tokenizer.terms("2023년 3월에 갔다")
    assert "3월" not in tokenizer.terms("3일에 갔다")


def test_question_words_and_light_verbs_are_stop_words(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("누가 무엇을 했습니까?") == []


def test_a_particle_ends_a_noun_phrase(tokenizer: Tokenizer) -> None:
    phrases = tokenizer.phrases("서울 날씨를 알려줘")
    assert "서울 날씨" in phrases
    assert not any("알려" in phrase and "날씨" in phrase for phrase in phrases)


def test_an_unbroken_run_of_syllables_costs_no_analysis(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("가" * 20_000 + " 파이썬을 쓴다")[-2:] == ["파이썬", "쓰다"]


def test_characters_outside_the_basic_plane_do_not_shift_morphemes(tokenizer: Tokenizer) -> None:
    assert tokenizer.terms("😀😀 파이썬을 😀 서버에") == ["파이썬", "서버"]


def test_one_text_has_the_same_terms_alone_and_among_others(tokenizer: Tokenizer) -> None:
    texts = [f"{SENTENCE} {number}" for number in range(150)]
    together = tokenizer.analyze_many(texts)
    assert [analysis.terms for analysis in together] == [tokenizer.terms(text) for text in texts]


def test_without_kiwi_words_lose_their_particles_and_are_provisional() -> None:
    analyzer = KoreanAnalyzer(_Silent)
    analysis = Tokenizer(analyzer).analyze(SENTENCE)
    assert analysis.provisional
    assert analysis.terms[:3] == ["동건", "파이썬", "데이터베이스"]
    analyzer.close()


def test_without_kiwi_a_question_is_its_nouns() -> None:
    analyzer = KoreanAnalyzer(_Silent)
    tokenizer = Tokenizer(analyzer)
    assert tokenizer.terms("가족과 등산할 때 무엇을 해?") == ["가족", "등산"]
    assert tokenizer.terms("추천한 책이 있어?") == ["추천", "책"]
    analyzer.close()


def test_english_text_is_never_provisional_and_loads_nothing() -> None:
    analyzer = KoreanAnalyzer(_Silent)
    tokenizer = Tokenizer(analyzer)
    assert tokenizer.ready_for("an apple")
    assert not tokenizer.analyze("an apple").provisional
    assert analyzer.state == "unloaded"


def test_an_analyser_that_keeps_failing_is_given_up_and_said_so() -> None:
    analyzer = KoreanAnalyzer(_Silent)
    for _ in range(3):
        ready = threading.Event()
        analyzer.when_ready(ready.set)
        analyzer.load()
        assert ready.wait(10)
        assert analyzer.analyse(["가"]) is None
    assert analyzer.state == "failed"
    assert analyzer.failure is not None
    assert "no answer" in analyzer.failure


def test_a_killed_analyser_process_costs_no_error_and_comes_back() -> None:
    engines: list[KiwiApart] = []

    def start() -> KiwiApart:
        engines.append(KiwiApart())
        return engines[-1]

    analyzer = KoreanAnalyzer(start)
    tokenizer = Tokenizer(analyzer)
    for _ in range(2):
        ready = threading.Event()
        analyzer.when_ready(ready.set)
        assert not tokenizer.ready_for(SENTENCE)
        assert ready.wait(60)
        assert not tokenizer.analyze(f"{SENTENCE} {len(engines)}").provisional
        engines[-1].kill()
        assert tokenizer.analyze(f"{SENTENCE} anew {len(engines)}").provisional
    analyzer.close()


def test_whoever_asks_late_is_told_at_once_that_it_is_ready(korean: KoreanAnalyzer) -> None:
    told = threading.Event()
    korean.when_ready(told.set)
    assert told.is_set()


def test_a_closed_analyser_answers_nothing_and_loads_nothing() -> None:
    analyzer = KoreanAnalyzer(_Silent)
    ready = threading.Event()
    analyzer.when_ready(ready.set)
    analyzer.load()
    assert ready.wait(10)
    analyzer.close()
    analyzer.load()
    assert analyzer.state == "closed"
    assert analyzer.analyse(["가"]) is None


def test_the_process_imports_nothing_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(3)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    engine = KiwiApart()
    assert engine.analyse(["파이썬을"])[0][0] == Morpheme("파이썬", "NNP", 0, 3)
    engine.close()


def test_where_no_process_can_be_started_kiwi_is_loaded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(ProcessNotStartedError):
        KiwiApart()
    engine = start_engine()
    assert isinstance(engine, KiwiHere)
    assert [morpheme.form for morpheme in engine.analyse(["서버를"])[0]] == ["서버", "를"]


def test_a_process_that_ends_at_once_is_an_error_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    false = tmp_path / "false"
    false.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    false.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(false))
    with pytest.raises(OSError, match=r"analyser ended|Broken pipe"):
        start_engine()


def test_threads_may_analyse_at_once(tokenizer: Tokenizer) -> None:
    texts = [f"getUserName {number} walked Apples {SENTENCE}" for number in range(40)]
    expected = [tokenizer.terms(text) for text in texts]
    fresh = Tokenizer(tokenizer._korean)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fresh.terms, texts)) == expected


def test_documents_read_by_the_fallback_are_stale_until_they_are_read_again(tokenizer: Tokenizer) -> None:
    fallback = Tokenizer(KoreanAnalyzer(_Silent))
    live, rebuilt = LexicalIndex(), LexicalIndex()
    texts = {"a": SENTENCE, "b": "an apple", "c": "서버를 재시작했다"}
    for doc_id, text in texts.items():
        live.add(doc_id, "default", fallback.analyze(text))
        rebuilt.add(doc_id, "default", tokenizer.analyze(text))
    assert live.stale_documents() == ["a", "c"]
    for doc_id in live.stale_documents():
        live.add(doc_id, "default", tokenizer.analyze(texts[doc_id]))
    assert live.stale_documents() == []
    assert dict(live.vocabulary()) == dict(rebuilt.vocabulary())
    query = {"만들다": 1.0, "재시작": 1.0, "appl": 1.0}
    assert live.search(query, None, 5).doc_ids == rebuilt.search(query, None, 5).doc_ids


@pytest.mark.parametrize(
    ("word", "noun"),
    [
        ("동건이는", "동건"),
        ("학교에서는", "학교"),
        ("나는", "나"),
        ("사과", "사과"),
        ("은", "은"),
        ("서울에서부터", "서울에서"),
        ("뉴턴의", "뉴턴"),
        ("참석한", "참석"),
        ("하이킹할", "하이킹"),
        ("추천했어요", "추천"),
        ("기대돼", "기대"),
        ("재시작되었습니다", "재시작"),
        ("한", "한"),
        ("올해", "올해"),
        ("북한", "북한"),
    ],
)
def test_the_fallback_takes_the_longest_particle_or_verb_form_off(word: str, noun: str) -> None:
    assert bare_noun(word) == noun
