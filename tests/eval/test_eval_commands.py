"""The commands around the evaluation: the page that they write, the picture, the weights that they change, and what use may change."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmark_page import PAGE, replace_part, table
from learning import EVERYTHING, REPEATED, SHORT, UNTOUCHED, UNTOUCHED_R5, UNTOUCHED_SHORT, Outcome, simulated, zipf
from learning_plot import Curve, drawn
from needs import questions_of, short_needs, wordings
from question_sets import LabelledMemory, Question, Space, load_set
from run import HOME
from sensitivity import WITHOUT_EFFECT, changes
from subjects import RememberingEncoder

from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.index.tokens import Tokenizer


def test_a_part_of_the_page_is_replaced_and_nothing_around_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a: begin -->\nold\n<!-- a: end -->\nafter\n", "utf-8")
    for text in ("first", "second"):
        replace_part("a", text, page)
        assert page.read_text("utf-8") == f"before\n<!-- a: begin -->\n\n{text}\n\n<!-- a: end -->\nafter\n"


def test_a_page_without_the_part_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n", "utf-8")
    with pytest.raises(ValueError, match="no part 'a'"):
        replace_part("a", "text", page)
    assert page.read_text("utf-8") == "before\n"


@pytest.mark.parametrize("name", ["results", "sensitivity", "learning"])
def test_the_shipped_page_has_every_part_that_a_command_writes(name: str) -> None:
    text = PAGE.read_text("utf-8")
    assert 0 <= text.find(f"<!-- {name}: begin -->") < text.find(f"<!-- {name}: end -->")


def test_a_table_has_a_column_for_every_head() -> None:
    assert table(["", "x"], [["a", "1"]]) == "|  | x |\n|---|---:|\n| a | 1 |"


def test_the_picture_is_well_formed_and_has_every_line_in_it() -> None:
    picture = drawn([0, 10, 20], [Curve("up & down", "#123456", True, [0.5, 0.6, 0.55]), Curve("flat", "#654321", False, [0.5, 0.5, 0.5])])
    root = ET.fromstring(picture)  # noqa: S314 - our own text
    assert len(root.findall("{*}polyline")) == 2
    assert "up & down 0.550" in {node.text for node in root.findall("{*}text")}


def test_every_numeric_weight_is_halved_and_doubled_alone() -> None:
    shipped = Weights()
    numeric = {f.name for f in fields(shipped) if not isinstance(getattr(shipped, f.name), bool)} - WITHOUT_EFFECT
    found = list(changes())
    assert {change.weight for change in found} == numeric
    for change in found:
        assert [f.name for f in fields(shipped) if getattr(change.weights, f.name) != getattr(shipped, f.name)] == [change.weight]


@pytest.fixture(scope="module")
def learned() -> Outcome:
    """Home, after so many cycles that something of everything has been learned."""
    home = [load_set(HOME)]
    return asyncio.run(simulated(home, partial(zipf, home, 240), EVERYTHING, RememberingEncoder(), checkpoints=1))


@pytest.mark.slow
def test_use_keeps_weights_and_vocabulary_within_their_bounds_and_what_is_never_asked_as_good(learned: Outcome) -> None:
    assert learned.bounded
    assert learned.reads > 0
    assert learned.bounds[-1].weights[1] > 1.0
    assert learned.gain(UNTOUCHED_R5).mean >= -0.01
    assert learned.gain(UNTOUCHED).mean >= -0.03
    assert learned.gain(UNTOUCHED_SHORT).mean >= -0.05
    assert learned.gain(REPEATED).mean >= 0


@pytest.mark.slow
def test_short_needs_that_were_learned_are_answered_at_once(learned: Outcome) -> None:
    places = [*learned.of_short("key"), *learned.of_short("alias")]
    _, after, gain = learned.change(SHORT, places)
    assert len(places) >= 2
    assert after == 1.0
    assert gain.mean > 0
    assert learned.gain(SHORT).mean > 0


def test_short_needs_are_made_of_a_questions_rarest_words_and_of_those_that_no_answer_has() -> None:
    dog = LabelledMemory("m1", "Ann walks the dog at noon", ("Ann", "dog"), {"Ann": "name"})
    space = Space("home", (dog,), (Question("q", "When does Ann take her puppy for exercise at noon?", frozenset({"m1"}), "direct"),))
    ((question, need),) = questions_of(space, {("home", "m1"): "000000000001"})
    frequencies = {"ann": 9, "take": 5, "puppi": 1, "exercis": 0, "noon": 2}

    def short(place: int) -> list[str]:
        found = short_needs(space, question, place, need, Tokenizer(), lambda terms: {term: frequencies[term] for term in terms})
        return [one.words for one in found]

    assert [short(place)[0] for place in range(3)] == ["exercise", "puppy exercise", "puppy exercise noon"]
    assert short(0)[1] == "Ann puppy exercise"
    assert need.context == question.query


def test_no_wording_shares_a_word_with_its_memory() -> None:
    home = load_set(HOME)
    memories = {(space.namespace, memory.ref): memory for space in home.spaces for memory in space.memories}
    tokenizer = Tokenizer()
    asked = wordings([home], {place: f"{number:012x}" for number, place in enumerate(memories)})
    known = {f"{number:012x}": memory for number, memory in enumerate(memories.values())}
    assert len(asked) >= 90
    for need in asked:
        (memory,) = (known[memory_id] for memory_id in need.gold)
        assert not set(tokenizer.terms(need.words)) & set(tokenizer.terms(" ".join((memory.content, *memory.keys)))), need.words
