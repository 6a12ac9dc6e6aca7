"""The not-found gate: what counts as covered, who is a stranger, and how the floor follows the store."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest

from keymem_daemon.core.changes import KeyAdded
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Key, KeyType
from keymem_daemon.core.rank.gate import Candidate, Case, Grounds, floor_for, named_enough, written_names
from keymem_daemon.core.rank.weights import Weights

WEIGHTS = Weights()


def grounds(idf: Mapping[str, float], documents: Mapping[str, set[str]], *, stranger: bool = False, **near: Mapping[str, float]) -> Grounds:
    """Over documents with these terms, all loaded."""
    result = Grounds(idf, near, stranger, lambda ids, terms: [documents[i] & set(terms) for i in ids], (), lambda _: False)
    result.load(documents)
    return result


def test_a_memory_covers_the_share_of_the_mass_whose_words_it_has() -> None:
    judged = grounds({"ferry": 3.0, "august": 1.0}, {"a": {"ferry", "island"}, "b": {"ferry", "august"}, "c": set()})
    assert [judged.covered(m) for m in "abc"] == [0.75, 1.0, 0.0]


def test_a_word_whose_nearest_words_it_has_is_covered_in_part_and_never_twice() -> None:
    judged = grounds({"휴가": 1.0, "august": 1.0}, {"a": {"holiday", "vacation"}, "b": {"august", "holiday"}}, 휴가={"holiday": 0.6, "vacation": 0.8})
    assert judged.covered("a") == pytest.approx(0.4)
    assert judged.covered("b") == pytest.approx(0.8)


def test_a_question_without_terms_is_covered_by_nothing() -> None:
    judged = grounds({}, {"a": {"ferry"}})
    assert (judged.covered("a"), judged.named(["ferry"])) == (0.0, 0.0)


def test_words_that_name_a_key_carry_their_mass_though_no_memory_has_them() -> None:
    judged = grounds({"금요일": 3.0, "배포하다": 1.0}, {"a": {"friday"}})
    assert judged.named(["금요일", "금요일", "friday"]) == 0.75


def test_a_stranger_costs_every_memory_the_same_evidence() -> None:
    plain, strange = (grounds({"lives": 1.0}, {"a": {"lives"}}, stranger=stranger) for stranger in (False, True))
    assert plain.evidence("a", 0.3, WEIGHTS) == pytest.approx(0.3 + WEIGHTS.gate_coverage)
    assert strange.evidence("a", 0.3, WEIGHTS) == pytest.approx(plain.evidence("a", 0.3, WEIGHTS) - WEIGHTS.gate_sign)


def test_a_memory_that_names_nobody_of_those_who_are_named_costs_itself_the_evidence_and_a_stranger_costs_it_once() -> None:
    def judged(*, stranger: bool) -> Grounds:
        documents = {"hers": {"mira", "flat"}, "both": {"mira", "tobin"}, "his": {"flat"}, "spelt": {"미라"}, "linked": {"flat"}}

        def matches(ids: list[str], terms: list[str]) -> list[set[str]]:
            return [documents[i] & set(terms) for i in ids]

        near = {"mira": {"미라": 0.9}}
        idf = dict.fromkeys(("mira", "tobin", "flat"), 1.0)
        result = Grounds(idf, near, stranger, matches, {"mira", "tobin"}, lambda memory_id: memory_id == "linked")
        result.load(documents)
        return result

    known = judged(stranger=False)
    assert [m for m in ("hers", "both", "his", "spelt", "linked") if known.of_another(m)] == ["his"]
    assert known.evidence("linked", 0.3, WEIGHTS) - known.evidence("his", 0.3, WEIGHTS) == pytest.approx(WEIGHTS.gate_sign)
    strange = judged(stranger=True)
    assert not any(strange.of_another(m) for m in ("hers", "his"))
    assert strange.evidence("his", 0.3, WEIGHTS) == pytest.approx(known.evidence("his", 0.3, WEIGHTS))


def test_a_candidate_of_another_gives_way_to_one_of_who_is_named() -> None:
    case = Case(False, [Candidate(0.6, 0.0, of_another=True), Candidate(0.4, 0.0)], 0, 1_000)
    assert case.evidence(WEIGHTS) == 0.4


@pytest.mark.parametrize(
    "text",
    ["Where does John live?", "What are John's plans?", "John's plans?", "John은 어디 살아?", "He left. And where did John go?", "“So,” said John"],
)
def test_a_word_with_a_capital_within_a_sentence_or_bound_to_what_follows_is_written_as_a_name(text: str) -> None:
    assert written_names(text) == {"john"}
    assert not written_names(text.lower())


@pytest.mark.parametrize("text", ["Parse the file", "Wait. Parse the file", "- Parse it", "PARSE the whole PARSE", "in Parsed form", ""])
def test_the_first_word_of_a_sentence_capitals_and_longer_words_are_no_names(text: str) -> None:
    assert "parse" not in written_names(text)


@pytest.mark.parametrize("text", ["what does otter-1 cost", "Otter-1은 얼마야?", "the port of otter_1.", "is otter-1a up"])
def test_a_word_that_ends_in_a_number_is_a_name_in_any_case(text: str) -> None:
    (name,) = written_names(text)
    assert name in {"otter-1", "otter_1", "otter-1a"}


@pytest.mark.parametrize("text", ["due at 5pm on the 3rd", "costs 34kg", "port 8080", "the pre-2019 plan"])
def test_numbers_with_their_units_are_no_names(text: str) -> None:
    assert written_names(text).isdisjoint({"5pm", "3rd", "34kg", "8080", "2019"})


def test_months_and_days_are_no_strangers() -> None:
    assert not written_names("What happened in June, on a Friday?")


def test_a_very_long_text_is_read_in_one_pass() -> None:
    assert written_names("- " * 200_000 + "John met Paul") == {"paul"}


def test_the_floor_grows_with_the_store_evenly_per_doubling_up_to_a_limit() -> None:
    assert floor_for(0.39, 1_000, WEIGHTS) == 0.39
    sizes = [floor_for(0.39, 1_000 * 2**n, WEIGHTS) for n in range(-6, 6)]
    assert all(b - a == pytest.approx(WEIGHTS.gate_growth) for a, b in pairwise(sizes))
    assert floor_for(0.39, 0, WEIGHTS) == floor_for(0.39, 8, WEIGHTS) > 0.25
    assert floor_for(0.39, 10**6, WEIGHTS) == floor_for(0.39, 10**7, WEIGHTS) < 0.5


def test_no_key_named_is_never_enough() -> None:
    assert not named_enough(Graph(), [], 1.0)


def graph_of(key_type: KeyType) -> Graph:
    """One key, k."""
    graph = Graph()
    graph.apply(KeyAdded(Key("k", "ferry", key_type)))
    return graph


def test_a_name_is_enough_unless_a_stranger_stands_beside_it() -> None:
    assert named_enough(graph_of("name"), ["k"], 0.1)
    assert named_enough(graph_of("name"), ["k"], 0.1, tells=True)
    assert not named_enough(graph_of("name"), ["k"], 1.0, stranger=True)


def test_another_key_is_enough_when_it_is_half_of_what_is_asked_and_never_of_what_is_ordered() -> None:
    graph = graph_of("concept")
    assert named_enough(graph, ["k"], 0.5)
    assert not named_enough(graph, ["k"], 0.49)
    assert not named_enough(graph, ["k"], 1.0, tells=True)
    assert not named_enough(graph, ["k"], 1.0, stranger=True)


def test_each_sign_costs_the_case_the_same_and_what_is_named_needs_no_evidence() -> None:
    cases = [Case(False, [Candidate(0.2, 1.0), Candidate(0.5, 0.2)], signs, 1_000) for signs in (0, 1, 2)]
    best = 0.5 + 0.2 * WEIGHTS.gate_coverage
    assert [case.evidence(WEIGHTS) for case in cases] == pytest.approx([best - WEIGHTS.gate_sign * n for n in range(3)])
    assert cases[0].passes(best - 0.001, WEIGHTS)
    assert not cases[0].passes(best + 0.001, WEIGHTS)
    assert not cases[1].passes(best - 0.001, WEIGHTS)
    assert Case(True, (), 0, 1_000).passes(1.0, WEIGHTS)
    assert not Case(False, (), 0, 1_000).passes(0.1, WEIGHTS)


def test_without_vectors_a_memory_must_cover_half_of_what_is_asked() -> None:
    assert Case(False, [Candidate(0.0, 0.5)], 1, 10, semantic=False).passes(0.9, WEIGHTS)
    assert not Case(False, [Candidate(0.0, 0.49)], 0, 10, semantic=False).passes(0.0, WEIGHTS)
