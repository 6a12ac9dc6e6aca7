"""Text that looks like a credential is not stored: a memory is read back into prompts for years, a key must not be.

Two kinds of evidence. Shapes that only credentials have: the public prefixes of providers' keys, PEM blocks, JWTs, connection
strings with a password. And tokens of high entropy beside a word such as "password". Prose about passwords is no secret.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from keymem_daemon.core.errors import InvalidArgument

_SHAPES: Final = (
    ("private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")),
    ("Anthropic API key", re.compile(r"\bsk-ant-[A-Za-z0-9_-]{20,}")),
    ("OpenAI API key", re.compile(r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}")),
    ("GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})")),
    ("GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("AWS access key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("Google API key", re.compile(r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    ("Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{20,}")),
    ("Stripe key", re.compile(r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,}")),
    ("Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}\b")),
    ("PyPI token", re.compile(r"\bpypi-[A-Za-z0-9_-]{50,}")),
    ("SendGrid key", re.compile(r"\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{30,}")),
    ("Telegram bot token", re.compile(r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,}")),
    ("JSON web token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    ("connection string with a password", re.compile(r"\b[a-z][a-z0-9+.-]{2,}://[^\s:/@]+:(?!\*+@|<|\$\{|\{\{|%s|x{3,}@|\.{3}@)[^\s:/@]{3,}@[^\s/]+", re.IGNORECASE)),
)
_WORDS: Final = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_ -]?key|apikey|access[_ -]?key|private[_ -]?key|credential|bearer|client[_ -]?secret)s?(?![a-z])"
    r"|비밀번호|비번|암호|패스워드|토큰|시크릿|인증키|api ?키|パスワード|密码|密碼|contraseña"
)
_NEAR: Final = re.compile(rf"(?:{_WORDS})[^\n]{{0,24}}?(?P<token>[A-Za-z0-9+/=_.!@#$%^&*~-]{{8,}})", re.IGNORECASE)
# Bits a character: English words stay below 3.2 at this length, random letters and digits above 3.4.
_BITS: Final = 3.2
_LONG: Final = 16
_BITS_LONG: Final = 3.5


@dataclass(frozen=True, slots=True)
class Secret:
    """What it looks like and at which character it begins."""

    kind: str
    position: int


def found_secret(text: str) -> Secret | None:
    """The first credential in ``text``, if it has one; also one that is hidden by invisible or wide characters."""
    plain = text if text.isascii() else _plain(text)
    found = _found_plain(plain)
    if found is None or plain == text:
        return found
    return Secret(found.kind, _position_in(text, found.position))


def _plain(text: str) -> str:
    visible = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", visible)


def _position_in(text: str, position: int) -> int:
    """The character of ``text`` from which on its plain form has ``position`` characters behind it, as near as can be told."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if len(_plain(text[: middle + 1])) <= position:
            low = middle + 1
        else:
            high = middle
    return low


def _found_plain(text: str) -> Secret | None:
    for kind, shape in _SHAPES:
        match = shape.search(text)
        if match is not None:
            return Secret(kind, match.start())
    for match in _NEAR.finditer(text):
        if _is_random(match["token"]):
            return Secret("password or token", match.start("token"))
    return None


def refuse_secrets(argument: str, text: str) -> None:
    """Raise `InvalidArgument` when ``text`` has a credential; the message names the kind and position, never the value."""
    secret = found_secret(text)
    if secret is not None:
        raise InvalidArgument(
            argument,
            "no credentials",
            f"what looks like {'an' if secret.kind[0] in 'AEIO' else 'a'} {secret.kind} at character {secret.position}",
            "Remember where the credential is kept instead of the credential. KEYMEM_ALLOW_SECRETS=true stores it all the same.",
        )


def _is_random(token: str) -> bool:
    """Digits and letters mixed with nothing to read between them: what a generator makes, not a word, path, date or version."""
    token = token.strip(".!=*-_")
    if len(token) < 8 or re.fullmatch(r"[\d.:/-]+|v?\d+(?:\.\d+)+\S*", token):
        return False
    kinds = sum(bool(re.search(pattern, token)) for pattern in (r"[a-z]", r"[A-Z]", r"\d", r"[^A-Za-z0-9]"))
    bits = _entropy(token)
    if len(token) >= _LONG:
        return kinds >= 2 and bool(re.search(r"\d", token)) and bits >= _BITS_LONG
    return kinds >= 3 and bool(re.search(r"\d", token)) and bits >= min(_BITS, math.log2(len(token)) - 0.3)


def _entropy(token: str) -> float:
    """Shannon entropy of the characters, bits each."""
    size = len(token)
    return -sum(n / size * math.log2(n / size) for n in Counter(token).values())


def refuse_secrets_in(texts: Iterable[tuple[str, str]]) -> None:
    """`refuse_secrets` over (argument, text) pairs."""
    for argument, text in texts:
        refuse_secrets(argument, text)
