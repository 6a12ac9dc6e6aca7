"""Single promises of the lexical index, by example."""

from __future__ import annotations

import math

import pytest

from keymem_daemon.index.lexical import LexicalIndex
from keymem_daemon.index.tokens import Analysis, QueryToken, Tokenizer


def _index(**documents: str) -> LexicalIndex:
    index, tokenizer = LexicalIndex(), Tokenizer()
    for doc_id, text in documents.items():
        index.add(doc_id, "default", tokenizer.analyze(text))
    return index


def test_a_deleted_document_never_fills_a_result_slot() -> None:
    index = _index(a="red apple", b="apple", c="green apple pie")
    index.remove("b")
    assert set(index.search({"appl": 1.0}, None, 2).doc_ids) == {"a", "c"}
    assert index.term_statistics(["appl"])["appl"].df == 2


def test_a_dead_posting_that_is_not_swept_yet_counts_for_nothing() -> None:
    index = _index(**{f"d{number}": "apple pie" if number % 2 else "apple" for number in range(20)})
    index.remove("d3")
    assert len(index._postings[index._term_of["appl"]]) == 20
    assert len(index.search({"appl": 1.0}, None, 50).doc_ids) == 19
    assert "d3" not in index.search({"appl": 1.0, "pie": 1.0}, frozenset({"default"}), 50).doc_ids
    assert index.term_statistics(["appl"])["appl"].df == 19
    assert "d3" not in index.documents_with_all(["appl", "pie"])


def test_coverage_has_a_column_for_each_asked_term_also_a_repeated_one() -> None:
    index = _index(a="apple pie", b="pear")
    covered = index.coverage(["b", "missing", "a"], ["pie", "plum", "pie", "appl"])
    assert covered.tolist() == [[False] * 4, [False] * 4, [True, False, True, True]]
    assert index.coverage([], ["pie"]).shape == (0, 1)
    assert index.coverage(["a"], []).shape == (1, 0)


def test_a_document_that_is_put_again_has_only_its_new_words() -> None:
    index = _index(a="red apple")
    index.add("a", "work", Tokenizer().analyze("blue car"))
    assert index.search({"appl": 1.0}, None, 5).doc_ids == []
    assert index.search({"car": 1.0}, frozenset({"work"}), 5).doc_ids == ["a"]
    assert index.search({"car": 1.0}, frozenset({"default"}), 5).doc_ids == []


def test_equal_scores_are_ordered_by_id() -> None:
    index = LexicalIndex()
    for doc_id in ("bbbbbbbbbbbb", "aaaaaaaaaaab", "cccccccccccc", "aaaaaaaaaaaa"):
        index.add(doc_id, "default", Analysis.of_terms(["apple"]))
    assert index.search({"apple": 1.0}, None, 3).doc_ids == ["aaaaaaaaaaaa", "aaaaaaaaaaab", "bbbbbbbbbbbb"]
    assert index.search({"apple": 1.0}, None, 1).doc_ids == ["aaaaaaaaaaaa"]


def test_a_weight_scales_its_term() -> None:
    index = _index(a="apple", b="pear")
    full, half = index.search({"appl": 1.0}, None, 1).scores[0], index.search({"appl": 0.5}, None, 1).scores[0]
    assert half == pytest.approx(full / 2)


def test_idf_is_that_of_lucene() -> None:
    index = _index(a="apple", b="apple", c="pear")
    assert index.term_statistics(["appl"])["appl"].idf == pytest.approx(math.log(1 + 1.5 / 2.5))
    unknown = index.term_statistics(["plum"])["plum"]
    assert unknown.df == 0
    assert unknown.idf == pytest.approx(math.log(1 + 3.5 / 0.5))
    assert LexicalIndex().term_statistics(["plum"])["plum"].idf == 0.0


def test_an_empty_index_and_an_empty_query_answer_with_nothing() -> None:
    assert LexicalIndex().search({"apple": 1.0}, None, 5).doc_ids == []
    assert _index(a="apple").search({}, None, 5).doc_ids == []
    assert _index(a="the").search({"appl": 1.0}, None, 5).doc_ids == []


def test_the_vocabulary_names_words_and_the_terms_they_lead_to() -> None:
    index = _index(a="Apples and an apple", b="東京データベース")
    words = dict(index.vocabulary())
    assert words["apples"] == words["apple"] == "appl"
    assert "データベース" in words
    assert "デー" not in words


def test_a_word_leaves_the_vocabulary_with_its_last_document() -> None:
    index = _index(a="apple pear", b="apple")
    index.vocabulary_changes()
    before = index.vocabulary_version
    index.remove("a")
    assert index.vocabulary_version > before
    assert index.vocabulary_changes().removed == ("pear",)
    assert index.vocabulary_changes().added == ()


def test_two_tokens_that_share_a_surface_count_as_one_word() -> None:
    index = LexicalIndex()
    index.add("a", "default", Analysis((QueryToken("run", "run"),)))
    index.add("b", "default", Analysis((QueryToken("run", "run", word=False),)))
    index.remove("a")
    assert dict(index.vocabulary()) == {}
    assert index.search({"run": 1.0}, None, 5).doc_ids == ["b"]
