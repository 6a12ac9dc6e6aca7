"""The not-found gate as recall applies it: strangers, orders, key names, and what may be forgotten meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest
from open_engines import caller, play, saved

from keymem_daemon.core.rank.keymatch import literal_matches
from keymem_daemon.embed.builtin import BuiltinEncoder
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.forget import forget
from keymem_daemon.service.gate import gate_case
from keymem_daemon.service.recall import recall
from keymem_daemon.service.signals import first_stage, query_grounds, read_query


def test_a_key_of_stop_words_answers_only_those_who_say_nothing_else() -> None:
    async def scene(engine: Engine) -> None:
        await engine.light.load()
        film = await saved(engine, "A thriller by Stephen King about a clown", "It", key_types={"It": "proper_noun"})
        assert (await recall(engine, caller(), "It"))["memories"][0]["id"] == film
        prompt = "There is an off-by-one error in the pagination, please fix it"
        assert (await recall(engine, caller(), prompt, prompt))["status"] == "no_match"

    play(scene, encoder=BuiltinEncoder())


def test_what_is_known_of_one_person_does_not_answer_for_a_stranger_beside_unless_the_name_is_one_of_a_list_of_words() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, "Mira works from home on Tuesdays", "Mira", namespace="studio", key_types={"Mira": "name"})
        for number in range(30):
            await saved(engine, f"Bystander {number} says nothing of that kind", f"bystander {number}", namespace="studio")
        assert (await recall(engine, caller(), "Does Mira share a flat?", namespace="studio"))["status"] == "found"
        assert (await recall(engine, caller(), "Does Mira share a flat with Quentin?", namespace="studio"))["status"] == "no_match"
        assert (await recall(engine, caller(), "Mira Quentin flat", namespace="studio"))["status"] == "found"

    play(scene)


def test_what_is_named_may_be_forgotten_while_it_is_asked_for() -> None:
    async def scene(engine: Engine) -> None:
        question = "Does Zora sail to Heron Island?"
        kept = await saved(engine, "The ferry to Heron Island sails at dawn", "ferry")
        gone = await saved(engine, "Zora sails", "Zora", key_types={"Zora": "name"})
        weights, deadline = engine.weights, engine.no_deadline()
        signals = await read_query(engine, question, None, weights)
        assert signals.named
        await forget(engine, caller(), gone)
        assert not any(key_id in engine.graph.keys for key_id in signals.named)
        stage = await first_stage(engine, signals, None, weights, deadline)
        assert set(stage.scores) == {kept}
        assert not gate_case(engine, signals, signals, stage, None, None, weights).named
        assert engine.graph.surfaces_in(next(iter(signals.named)), None) == ()

    play(scene)


def test_a_longer_key_of_another_namespace_takes_nothing_from_a_shorter_one_inside_it() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, "Mira works from home", "Mira", namespace="studio", key_types={"Mira": "name"})
        scope = frozenset({"studio"})

        def weights(scope: frozenset[str] | None) -> list[float]:
            return sorted(match.weight for match in literal_matches(engine.graph, engine.lexicon, "Where is Mira Lake?", scope).values())

        assert weights(scope) == [1.0]
        await saved(engine, "Mira Lake is frozen", "Mira Lake", namespace="travel")
        named = {engine.graph.name_in(k, None): m.weight for k, m in literal_matches(engine.graph, engine.lexicon, "Where is Mira Lake?", scope).items()}
        assert named["Mira"] == 1.0
        assert weights(None) == [0.5, 1.0]

    play(scene)


def test_a_memory_without_any_of_the_names_of_a_question_is_of_another_and_a_stranger_is_one_to_all_alike() -> None:
    async def scene(engine: Engine) -> None:
        his = await saved(engine, "He runs a dance studio", "Tobin", "dancing", key_types={"Tobin": "name"})
        hers = await saved(engine, "The choir sang when Paulina opened her dance studio", "choir")
        linked = await saved(engine, "She dances on Sundays", "미라", "dancing", key_types={"미라": "name"})
        for question, others in {
            "When did Paulina open her dance studio?": {his, linked},
            "When did Mira dance?": set(),  # nobody knows her: a stranger to all alike
            "What does Tobin's studio offer Paulina?": {linked},
            "Who dances?": set(),
        }.items():
            signals = await read_query(engine, question, None, engine.weights)
            grounds = query_grounds(engine, signals, None)
            grounds.load([his, hers, linked])
            assert {m for m in (his, hers, linked) if grounds.of_another(m)} == others, question

    play(scene)


def test_what_lies_beyond_the_callers_reach_changes_nothing_about_what_is_answered() -> None:
    async def scene(engine: Engine) -> None:
        mapped = caller(namespaces=("studio",))
        question = "Does Mira share a flat with 서윤?"
        await saved(engine, "Mira works from home on Tuesdays", "Mira", namespace="studio", key_types={"Mira": "name"})
        before = [await recall(engine, mapped, question, namespace=searched) for searched in (None, "studio")]
        assert [answer["status"] for answer in before] == ["found", "found"]
        await saved(engine, "서윤이는 피아노를 배운다", "서윤", namespace="family", key_types={"서윤": "name"})
        assert [await recall(engine, mapped, question, namespace=searched) for searched in (None, "studio")] == before

    play(scene)


@pytest.mark.parametrize(
    ("text", "name", "key_type", "status"),
    [
        ("서윤이는 피아노를 배운다", "서윤", "name", "no_match"),
        ("서윤이는 피아노를 배운다", "서윤", "concept", "found"),
        ("Tobin learns to play the piano", "Tobin", "name", "found"),
    ],
)
def test_a_name_known_only_elsewhere_is_a_stranger_where_a_caller_who_reads_everything_searches(
    text: str, name: str, key_type: str, status: str
) -> None:
    async def scene(engine: Engine) -> None:
        question = f"Does Mira share a flat with {name}?"
        await saved(engine, "Mira works from home on Tuesdays", "Mira", namespace="studio", key_types={"Mira": "name"})
        await saved(engine, "The invoices of last spring were sorted by the cousin of Tobin", "invoices", namespace="studio")
        before = await recall(engine, caller(), question, namespace="studio")
        assert before["status"] == "found"
        await saved(engine, text, name, namespace="family", key_types={name: key_type})
        after = await recall(engine, caller(), question, namespace="studio")
        assert after["status"] == status
        if status == "found":
            assert after == before
        else:
            assert not after["memories"]
            assert {key["concept"] for key in after["nearest_keys"]} <= {"Mira", "invoices"}
            assert (await recall(engine, caller(), question))["status"] == "found"

    play(scene)


def test_an_order_is_not_answered_by_a_key_that_it_happens_to_name_but_a_question_and_a_list_of_words_are() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, "They are imperative and begin with a ticket", "commit messages")
        for number in range(30):
            await saved(engine, f"Bystander {number} says nothing of that kind", f"bystander {number}")
        for query in ("commit messages", "What are our commit messages like?", "imperative commit messages"):
            assert (await recall(engine, caller(), query, query))["status"] == "found", query
        order = "Put the commit messages into English"
        assert (await recall(engine, caller(), order, order))["status"] == "no_match"
        assert (await recall(engine, caller(), "commit messages", order))["status"] == "found"
        assert (await recall(engine, caller(), order, "What are our commit messages like?"))["status"] == "found"
        assert (await recall(engine, caller(), "imperative ticket", "imperative ticket"))["status"] == "found"

    play(scene)


def test_a_key_named_in_another_language_answers_when_it_is_most_of_the_question() -> None:
    async def scene(engine: Engine) -> None:
        release = await saved(engine, "Nothing is rolled out at the end of the week", "Friday", "release schedule")
        for number in range(30):
            await saved(engine, f"Bystander {number} says nothing of that kind", f"bystander {number}")
        engine.profile = replace(engine.profile, gate_floor=0.99)
        assert (await recall(engine, caller(), "금요일은?"))["memories"][0]["id"] == release
        assert (await recall(engine, caller(), "금요일 베란다 냉장고 수리"))["status"] == "no_match"

    play(scene)
