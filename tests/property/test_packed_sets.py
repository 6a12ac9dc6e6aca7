"""Packed sets against a dictionary of sets, on arbitrary histories."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.index.packed import PackedSets

NAMES = st.sampled_from(["a", "b", "c"])
MEMBERS = st.integers(0, 80).map(str)
STEPS = st.one_of(
    st.tuples(st.just("add"), NAMES, MEMBERS),
    st.tuples(st.just("fill"), NAMES, MEMBERS),
    st.tuples(st.just("discard"), NAMES, MEMBERS),
    st.tuples(st.just("empty"), NAMES, MEMBERS),
    st.tuples(st.just("pop"), NAMES, MEMBERS),
)


@given(st.lists(STEPS, max_size=60))
def test_packed_sets_hold_what_sets_would_hold(steps: list[tuple[str, str, str]]) -> None:
    packed, plain = PackedSets(), dict[str, set[str]]()
    for what, name, member in steps:
        members = plain.setdefault(name, set())
        many = [str(number) for number in range(int(member))]
        match what:
            case "pop":
                assert set(packed.pop(name)) == plain.pop(name)
            case "add" | "fill":
                for one in [member] if what == "add" else many:
                    packed.add(name, one)
                    members.add(one)
            case _:
                for one in [member] if what == "discard" else many:
                    packed.discard(name, one)
                    members.discard(one)
        found = packed.get(name)
        assert len(found) == len(set(found))
        assert set(found) == plain.get(name, set())
