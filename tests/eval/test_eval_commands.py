"""The commands around the evaluation: the page that they write, the picture, the weights that they change, and what use may change."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmark_page import PAGE, replace_part, table
from learning import simulated
from learning_plot import Curve, drawn
from question_sets import load_set
from run import HOME
from sensitivity import WITHOUT_EFFECT, changes

from keymem_daemon.core.rank.weights import Weights


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


@pytest.mark.slow
def test_use_keeps_weights_and_aliases_within_their_bounds_and_direct_retrieval_as_good() -> None:
    outcome = asyncio.run(simulated([load_set(HOME)], 300))
    assert outcome.bounded
    assert outcome.reads > 0
    assert outcome.gains()["R@5, untouched questions"].mean >= -0.01
    assert outcome.gains()["hit@1 of recall, untouched questions"].mean >= -0.03
    assert outcome.gains()["hit@1 of recall, repeated needs"].mean >= 0
