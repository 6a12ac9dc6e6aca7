"""What the builtin encoder does not hold in memory answers like what the library holds."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.embed import rows
from keymem_daemon.embed.builtin import BuiltinEncoder
from keymem_daemon.embed.prefixes import PrefixTable
from keymem_daemon.embed.rows import RowsOnDisk

TEXTS = ["Newton saw an apple fall.", "동건이는 어디 살아?", "", "🍓 " * 40, "東京の天気", "x" * 3000]


@given(st.dictionaries(st.text(), st.integers(0, 2**31 - 1)), st.lists(st.text()))
def test_a_prefix_table_answers_like_the_dictionary_it_was_made_of(entries: dict[str, int], others: list[str]) -> None:
    table = PrefixTable(entries)
    assert [table.get(text) for text in [*entries, *others]] == [entries.get(text) for text in [*entries, *others]]


def test_strings_of_the_same_bytes_and_another_width_are_told_apart() -> None:
    table = PrefixTable({"ir": 1, "物": 2})
    assert (table.get("ir"), table.get("物")) == (1, 2)


@given(st.lists(st.integers(0, 99), max_size=30))
def test_rows_on_disk_are_the_rows_of_the_table(numbers: list[int]) -> None:
    table = np.random.default_rng(1).integers(0, 255, (100, 16), dtype=np.uint8)
    picked = np.array(numbers, dtype=np.int64)
    assert np.array_equal(RowsOnDisk(table, Path(tempfile.gettempdir()))[picked], table[picked])


def test_a_table_on_disk_leaves_no_file_behind(tmp_path: Path) -> None:
    table = RowsOnDisk(np.zeros((4, 4), dtype=np.uint8), tmp_path)
    assert table[np.array([3])].shape == (1, 4)
    assert list(tmp_path.iterdir()) == []


def test_the_encoder_with_its_table_on_disk_gives_the_same_vectors(tmp_path: Path) -> None:
    assert np.array_equal(BuiltinEncoder(tmp_path).encode(TEXTS), BuiltinEncoder().encode(TEXTS))


def test_the_encoder_works_where_its_table_can_be_nowhere(tmp_path: Path) -> None:
    vectors = BuiltinEncoder(tmp_path / "absent").encode(TEXTS)
    assert np.array_equal(vectors, BuiltinEncoder().encode(TEXTS))


def test_a_table_is_not_written_to_a_disk_that_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "ROOM_LEFT", 1 << 60)
    with pytest.raises(OSError, match="not enough room") as refused:
        RowsOnDisk(np.zeros((4, 4), dtype=np.uint8), tmp_path)
    assert refused.value.errno == errno.ENOSPC
