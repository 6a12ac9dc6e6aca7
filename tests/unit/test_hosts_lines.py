"""Counting lines of a file that grows, however it is cut into blocks and visits."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.hosts.lines import BLOCK_BYTES, LINE_BYTES, Count, advanced, record_of, tails

ENOUGH = 1 << 40
NEEDLE = b'"user"'


def is_user(line: bytes) -> bool:
    record = record_of(line)
    return record is not None and record.get("type") == "user"


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def counted(path: Path, count: Count, most: int = ENOUGH) -> int | None:
    with opened(path) as descriptor:
        return advanced(descriptor, count, NEEDLE, is_user, most)


LINES = st.lists(
    st.one_of(
        st.builds(lambda text: json.dumps({"type": "user", "text": text}).encode(), st.text(max_size=30)),
        st.builds(lambda text: json.dumps({"type": "assistant", "text": text}).encode(), st.text(max_size=30)),
        st.sampled_from(
            [b"", b"{", b'{"type":"user"', b'["user"]', b'"user"', b'\xff\xfe"user"', b'{"type":"x","y":"user"}']
        ),
    ),
    max_size=60,
)


@given(LINES, st.lists(st.integers(0, 400), max_size=6), st.integers(600, 2_000))
def test_the_count_is_that_of_the_whole_file_however_it_grew_and_was_visited(
    lines: list[bytes], cuts: list[int], most: int
) -> None:
    data = b"".join(line + b"\n" for line in lines)
    count = Count()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "t.jsonl"
        path.touch()
        for cut in sorted(min(cut, len(data)) for cut in cuts):
            with path.open("ab") as file:
                file.write(data[path.stat().st_size : cut])
            counted(path, count, most)
        with path.open("ab") as file:
            file.write(data[path.stat().st_size :])
        found = counted(path, count, most)
        for _visit in range(len(data) + 1):
            if found is not None:
                break
            found = counted(path, count, most)
    assert found == sum(map(is_user, lines))


def test_a_file_that_is_further_than_a_visit_reaches_has_no_number_yet(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"type":"user"}\n' * 10)
    count = Count()
    assert [counted(path, count, most=80) for _ in range(2)] == [None, 10]


def test_a_visit_that_has_had_enough_keeps_its_place_and_always_gets_past_a_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    long = b'{"type":"user","text":"' + b"x" * (2 * BLOCK_BYTES) + b'"}\n'
    path.write_bytes(long + b'{"type":"user"}\n' * (BLOCK_BYTES // 4))
    count = Count()
    visits: list[tuple[int | None, int]] = []
    with opened(path) as descriptor:
        while not visits or visits[-1][0] is None:
            found = advanced(descriptor, count, NEEDLE, is_user, ENOUGH, lambda: True)
            assert not visits or count.offset > visits[-1][1]
            visits.append((found, count.offset))
    assert visits[0] == (None, 3 * BLOCK_BYTES - (3 * BLOCK_BYTES - len(long)) % 16)
    assert visits[-1][0] == 1 + BLOCK_BYTES // 4
    assert len(visits) > 3


def test_a_file_that_was_cut_or_replaced_is_counted_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    count = Count()
    path.write_bytes(b'{"type":"user"}\n' * 3)
    assert counted(path, count) == 3
    path.write_bytes(b'{"type":"user"}\n')
    assert counted(path, count) == 1
    other = tmp_path / "other"
    other.write_bytes(b'{"type":"user"}\n' * 5)
    other.replace(path)
    assert counted(path, count) == 5


def test_a_line_too_long_to_hold_is_skipped_and_what_follows_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    long = b'{"type":"user","text":"' + b"x" * (LINE_BYTES + (3 << 20)) + b'"}\n'
    path.write_bytes(b'{"type":"user"}\n' + long + b'{"type":"user"}\n')
    assert counted(path, Count()) == 2


def test_the_ends_of_a_file_begin_at_a_line_and_grow_to_the_whole_of_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    data = b"".join(b"%08d\n" % number for number in range(20_000))
    path.write_bytes(data)
    with opened(path) as descriptor:
        ends = list(tails(descriptor))
    assert ends[-1] == data
    assert all(data.endswith(end) and len(end) % 9 == 0 for end in ends)
    assert len(ends[0]) <= 1 << 16
