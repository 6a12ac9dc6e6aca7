"""Claims that look as they should are taken, everything else is dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.api.identity import Claims, actor_of, claims_of, tool_use_of

SESSION = "0b0e1f8a-2f65-4d29-9d9e-0c1c1b6f5b11"
TURN = "1c0e1f8a-2f65-4d29-9d9e-0c1c1b6f5b22"


def test_the_headers_of_the_shim_are_read() -> None:
    claims = claims_of(
        {
            "x-keymem-request-id": "abc-1",
            "x-keymem-session": "abc",
            "x-keymem-seq": "7",
            "x-keymem-seq-floor": "5",
            "x-keymem-host-agent": "claude",
            "x-keymem-host-session": SESSION.upper(),
            "x-keymem-client": "claude-code/2.1",
            "x-keymem-cwd": "/home/%EB%8F%99%EA%B1%B4/a%20b",
            "x-keymem-hook-installed": "false",
        }
    )
    assert claims == Claims(
        request_id="abc-1",
        session="abc",
        seq=7,
        floor=5,
        host_agent="claude",
        host_session=SESSION,
        client="claude-code/2.1",
        cwd="/home/동건/a b",
        hook_installed=False,
    )


def test_claims_that_do_not_look_as_they_should_are_dropped() -> None:
    claims = claims_of(
        {
            "x-keymem-request-id": "a b",
            "x-keymem-session": "x" * 200,
            "x-keymem-seq": "-1",
            "x-keymem-host-agent": "someone",
            "x-keymem-host-session": "../../etc/passwd",
            "x-keymem-cwd": "relative",
            "x-keymem-hook-installed": "perhaps",
        }
    )
    assert claims == Claims()


def test_codex_names_its_session_and_turn_in_the_call() -> None:
    meta = {"threadId": SESSION, "x-codex-turn-metadata": {"turn_id": TURN}}
    actor = actor_of("remember", Claims(client="codex-mcp-client/0.171.0"), meta)
    assert (actor.host_agent, actor.host_session, actor.host_prompt) == ("codex", SESSION, TURN)


def test_what_codex_says_of_a_call_goes_before_a_header_left_over_from_another_host() -> None:
    meta = {"threadId": SESSION, "x-codex-turn-metadata": {"turn_id": TURN}}
    actor = actor_of("remember", Claims(host_agent="claude", host_session=TURN), meta)
    assert (actor.host_agent, actor.host_session, actor.host_prompt) == ("codex", SESSION, TURN)


def test_homes_of_hosts_are_absolute_paths() -> None:
    claims = claims_of({"x-keymem-claude-home": "/home/%EB%8F%99/.claude", "x-keymem-codex-home": "../etc"})
    assert claims.homes == {"claude": "/home/동/.claude"}


def test_the_id_of_a_tool_use_is_a_token_or_nothing() -> None:
    assert tool_use_of({"claudecode/toolUseId": "toolu_01"}) == "toolu_01"
    assert [tool_use_of({"claudecode/toolUseId": wrong}) for wrong in ("a b", 7, None, "x" * 200)] == [None] * 4


def test_the_name_of_the_client_tells_the_agent_when_no_header_does() -> None:
    assert actor_of("recall", Claims(client="claude-code/2.1")).host_agent == "claude"
    assert actor_of("recall", Claims(), None, "codex-mcp-client").host_agent == "codex"
    assert actor_of("recall", Claims(), None, "cursor").host_agent is None


@given(
    st.dictionaries(st.sampled_from(["x-keymem-cwd", "x-keymem-seq", "x-keymem-session", "x-keymem-client"]), st.text())
)
def test_no_header_breaks_the_reader(headers: dict[str, str]) -> None:
    claims = claims_of(headers)
    assert claims.cwd is None or claims.cwd.startswith("/")


@given(st.dictionaries(st.text(), st.none() | st.text() | st.dictionaries(st.text(), st.integers())))
def test_no_meta_breaks_the_reader(meta: dict[str, object]) -> None:
    assert actor_of("recall", Claims(), meta).tool == "recall"
