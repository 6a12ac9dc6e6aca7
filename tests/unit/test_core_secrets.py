"""What looks like a credential is refused and never quoted; prose about credentials is not one.

Every credential here is made up for the test and put together from parts, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import pytest

from keymem_daemon.core.errors import InvalidArgument
from keymem_daemon.core.secrets import found_secret, refuse_secrets

R20 = "q7Rk2ZpX9vLm4TbN8wYd"
R36 = R20 + "3HsJ6cGf1QaE5uVi"
UPPER16 = "Q7RK2ZPX9VLM4TBN"

SECRETS = (
    "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE",
    "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----",
    "my key is sk-" + "ant-api03-" + R36,
    "sk-" + "proj-" + R36,
    "OPENAI=sk-" + R36,
    "ghp" + "_" + R36,
    "gho" + "_" + R36,
    "github" + "_pat_" + R36 + R20,
    "glpat" + "-" + R20,
    "AKIA" + UPPER16,
    "the id ASIA" + UPPER16 + " is temporary",
    "AIza" + (R36 + R20)[:35],
    "xoxb" + "-123456789012-" + R20,
    "sk" + "_live_" + R36,
    "rk" + "_test_" + R36,
    "hf" + "_" + R36,
    "npm" + "_" + R36,
    "pypi" + "-" + R36 + R36,
    "SG." + R20 + "ab." + R36,
    "123456789:AA" + R36[:33],
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0." + R20,
    "postgres://admin:" + "hunter2x" + "@db.example.org/app",
    "mongodb+srv://u:" + R20 + "@cluster.example.net",
    "password: " + "Tr0ub4dor&3x",
    "비밀번호는 " + "kX9#mP2vQ!",
    "the api key is " + R20,
    "Authorization: Bearer " + R36,
)

INNOCENT = (
    "The user forgot the password and will reset it tomorrow",
    "Passwords are kept in the team's vault",
    "비밀번호는 종이에 적어 두었다",
    "비밀번호를 바꿔야 한다",
    "The token bucket refills every second",
    "The tokenizer is BertTokenizerFast",
    "secret santa is on 2024-12-24",
    "The API key lives in ~/.config/service/credentials.json",
    "The API key is read from OPENAI_API_KEY",
    "access key rotation happens every 90 days",
    "bearer authentication is used by the gateway",
    "Commit 3f786850e387550fdab836ed7e6dc881de23001b broke the build",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 is the empty file",
    "UUID 123e4567-e89b-12d3-a456-426614174000 names the session",
    "Version 2.14.3-rc.1+build.77 is deployed",
    "Call me at +82-10-1234-5678",
    "The image is data:image/png;base64 encoded",
    "https://example.org/path/to/page?id=42#top",
    "postgres://localhost:5432/app is the address",
    "redis://user@cache.example.org:6379/0",
    "postgres://user:<password>@db.example.org/app",
    "postgres://user:${DB_PASSWORD}@db.example.org/app",
    "mysql://root:****@localhost/app",
    "sk-learn is scikit-learn",
    "task-force-alpha-and-bravo-work-in-the-mountains-together",
    "The primary keys are sk_id and rk_id",
    "My secret ingredient is cinnamon",
    "The password policy demands 12 characters",
    "password manager: Bitwarden",
    "password: none",
    "The token limit is 200000",
    "token count 128000 is the maximum",
    "암호화폐에 투자하지 않는다",
    "암호는 동건이만 안다",
    "パスワードを忘れた",
    "密码已经更改",
    "Meeting on 2024-03-05T10:00:00Z about credentials",
    "The private key is stored in the hardware module",
    "hf_transfer speeds up downloads",
    "xoxo, your friend",
    "ghp stands for great horned pigeon",
    "AKIA is an airport code lookalike",
    "The secretary's name is Elizabeth2",
    "eyJ is how encoded JSON begins",
    "npm_config_registry is an environment variable",
    "getUserAccessTokenFromSessionStorage() is the function",
    "the secret is in src/keymem_daemon/core/secrets.py",
    "-----BEGIN PUBLIC KEY----- is no secret",
)


@pytest.mark.parametrize("text", SECRETS)
def test_a_credential_is_refused_and_never_quoted(text: str) -> None:
    with pytest.raises(InvalidArgument, match="content") as caught:
        refuse_secrets("content", f"Note: {text}")
    said = caught.value.message + caught.value.hint
    assert not any(part in said for part in text.split() if len(part) >= 16)


@pytest.mark.parametrize("text", INNOCENT)
def test_innocent_text_is_no_credential(text: str) -> None:
    assert found_secret(text) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("password " * 2_222, False),
        ("a" * 20_000, False),
        ("sk-" * 6_666, True),
        ("eyJ" * 6_666, False),
        ("a:" * 10_000, False),
        ("x://" * 5_000, False),
        ("Aa1" * 6_666, False),
    ],
)
def test_the_longest_text_is_searched_in_time(text: str, is_one: bool) -> None:
    assert (found_secret(text) is not None) is is_one


@pytest.mark.parametrize(
    "hidden",
    ["g\u200bhp_0123456789abcdefghijklmnopqrstuvwxyz", "\uff47\uff48\uff50_0123456789abcdefghijklmnopqrstuvwxyz"],
)
def test_a_credential_cannot_hide_behind_invisible_or_wide_characters(hidden: str) -> None:
    found = found_secret("é " + hidden)
    assert found is not None
    assert found.position == 2
