"""The commands around the evaluation: the page that they write, the picture, the weights that they change, and what use may change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from benchmark_page import PAGE, replace_part, table
from choose import BOUNDS, GRIDS, LEARNED, REFERENCE, SIMPLE, SPACES_TO_LEAVE_OUT, Choice, as_table, chosen, unaccounted
from fit import Case, left_out, weights_from
from judged import FLOOR, MEASURED, Kind, Setting, kind_of, loaded_sets
from learning import EVERYTHING, REPEATED, SHORT, UNTOUCHED, UNTOUCHED_R5, UNTOUCHED_SHORT, Outcome, simulated, zipf
from learning_plot import Curve, drawn
from measures import Groups, amount, grouped_difference
from needs import questions_of, short_needs, wordings
from question_sets import LabelledMemory, Question, Space, load_set
from run import HOME
from sensitivity import KINDS, as_tables, changes
from sensitivity import measured as sensitivities
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


@pytest.mark.parametrize("name", ["results", "choice", "learning", *(f"sensitivity of {kind}" for kind in KINDS)])
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
    shipped = Setting()
    names = [FLOOR, *(f.name for f in fields(Weights) if not isinstance(getattr(shipped.weights, f.name), bool))]
    found = list(changes())
    assert {change.weight for change in found} == set(names)
    for change in found:
        assert [name for name in names if change.setting.value(name) != shipped.value(name)] == [change.weight]


def test_every_weight_is_either_chosen_from_a_grid_with_its_shipped_value_in_it_or_learned_or_named_as_a_bound() -> None:
    assert unaccounted() == set()
    assert not set(GRIDS) & BOUNDS
    assert not LEARNED & {*GRIDS, *BOUNDS}
    assert all(Setting().value(name) in grid for name, grid in GRIDS.items())
    assert all(SIMPLE[name] in GRIDS[name] for name in SIMPLE)
    assert set(REFERENCE) <= set(GRIDS)


def test_a_difference_over_groups_is_that_of_their_means_and_zero_where_nothing_differs() -> None:
    a, b = [np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.5])], [np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0])]
    found = grouped_difference(a, b)
    assert found.mean == pytest.approx(amount(a) - amount(b)) == pytest.approx(0.75)
    assert found.low < found.mean < found.high
    same = grouped_difference(a, a)
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A set of invented numbers: what a question is worth at a weight's value, and by how much the gate's limits are exceeded there."""

    worth: Callable[[float, int], float]
    weight: str = "neighbour"
    exceeded: Callable[[float], float] = lambda _value: 0.0
    questions: int = 100

    @property
    def spaces(self) -> list[int]:
        return [question % SPACES_TO_LEAVE_OUT for question in range(self.questions)]

    async def objective(self, kind: Kind, setting: Setting) -> Groups:
        assert kind == kind_of(self.weight)
        return [np.array([self.worth(setting.value(self.weight), question) for question in range(self.questions)])]

    async def broken(self, setting: Setting) -> float:
        return self.exceeded(setting.value(self.weight))


def chosen_alone(*sets: Drawn) -> Choice:
    (found,) = asyncio.run(chosen(sets, [sets[0].weight], 3))
    return found


def test_a_weight_moves_to_a_value_that_is_better_by_more_than_the_noise() -> None:
    found = chosen_alone(Drawn(lambda value, question: value + question % 7))
    assert (found.chosen, found.best, found.equal, found.ships_well) == (0.3, 0.3, (0.3,), False)
    assert found.gain.mean == pytest.approx(0.1)
    assert not found.could_go
    assert found.left_out is not None
    assert found.left_out[0] == {0.3: SPACES_TO_LEAVE_OUT}


def test_a_weight_stays_when_another_value_is_better_for_few_questions_and_could_go_when_nothing_hangs_on_it() -> None:
    found = chosen_alone(Drawn(lambda value, question: float(question == 0 and value == 0.3)))
    assert (found.chosen, found.best, found.ships_well, found.could_go) == (0.2, 0.3, True, True)
    assert found.gain.low <= 0.0 < found.gain.mean


def test_what_one_set_gains_and_another_loses_moves_nothing() -> None:
    found = chosen_alone(Drawn(lambda value, _: value), Drawn(lambda value, _: -value))
    assert (found.chosen, found.ships_well) == (0.2, True)


def test_a_value_beyond_the_limits_of_the_gate_is_never_chosen_however_good_it_is() -> None:
    found = chosen_alone(Drawn(lambda value, _: -value, FLOOR, lambda value: max(0.0, 0.3 - value)))
    assert (found.refused, found.chosen) == ((0.27,), 0.3)


@dataclass(frozen=True, slots=True)
class ShortForm:
    """Choosing and sensitivity over a part of our own set."""

    choice: str
    sensitivity: Mapping[Kind, str]
    exceeded: tuple[float, ...]


@pytest.fixture(scope="module")
def short_form() -> ShortForm:
    names = ["not_about", FLOOR, "link_use"]
    home = load_set(HOME)
    cottage = replace(home, spaces=home.spaces[2:]).limited(15)

    async def run() -> ShortForm:
        async with loaded_sets([cottage], frozenset(map(kind_of, names))) as loaded:
            exceeded = [await loaded[0].broken(Setting().at(FLOOR, floor)) for floor in (0.0, 0.2, 0.33, 0.9)]
            found = await sensitivities(loaded, list(changes(names)))
            return ShortForm(as_table(await chosen(loaded, names, 1)), as_tables(found), tuple(exceeded))

    return asyncio.run(run())


def test_choosing_writes_a_row_for_every_weight_that_was_asked_for_and_names_the_bounds(short_form: ShortForm) -> None:
    assert all(short_form.choice.count(f"| `{name}` |") == 1 for name in ("not_about", FLOOR, "link_use"))
    assert all(f"`{name}`" in short_form.choice for name in BOUNDS)
    assert "Weights: 3. As the reference design has them: 1. Moved: 1. Ours: 1." in short_form.choice


def test_sensitivity_judges_the_ranking_the_gate_and_what_use_changes_each_by_its_own_figures(short_form: ShortForm) -> None:
    assert tuple(short_form.sensitivity) == KINDS
    for kind, name in zip(KINDS, ("not_about", FLOOR, "link_use"), strict=True):
        assert short_form.sensitivity[kind].startswith(f"Change of {MEASURED[kind][0]} / {MEASURED[kind][1]}:")
        assert short_form.sensitivity[kind].count(f"`{name}`") == 2


def test_a_low_floor_exceeds_the_limits_by_what_it_shows_and_a_high_one_by_what_it_refuses(short_form: ShortForm) -> None:
    lowest, low, shipped, highest = short_form.exceeded
    assert lowest > low > 0.0
    assert highest > shipped


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


def taught_cases() -> list[Case]:
    """Questions in five folds whose answer is the one with the most pairs, for which the score says nothing."""
    chance = np.random.default_rng(7)
    cases = []
    for number in range(100):
        features = np.column_stack([chance.normal(0.0, 0.3, 5), *chance.normal(0.0, 0.1, (2, 5)), chance.permutation(5)])
        features[:, 0] += 0.05 * features[:, 3]
        cases.append(Case("direct", "taught", number % 5, features, features[:, 3] == 4))
    return cases


def test_the_order_is_learned_from_what_tells_answers_apart_and_holds_where_it_was_not_learned() -> None:
    cases = taught_cases()
    score, apart, alike, pairs = weights_from(cases)
    assert score == 1.0
    assert pairs > 10 * 0.1 * max(abs(apart), abs(alike))
    gained = left_out(cases, lambda case: case.fold)["taught", "direct"]
    assert gained.low > 0.3


def test_nothing_is_learned_from_cases_that_tell_nothing_apart() -> None:
    with pytest.raises(ValueError, match="no case"):
        weights_from([replace(case, right=np.zeros(5, dtype=np.bool_)) for case in taught_cases()])
