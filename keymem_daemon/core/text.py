"""What makes two strings the same, and when a key stands literally in a text.

Folding is for comparison only; what people see keeps its case and its form. Nothing here depends on a language model: the
Korean part is a closed list of particles, so that the answer is the same on every machine and at every moment.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final, Literal

Script = Literal["latin", "hangul", "kana", "han", "cyrillic", "other"]

_PARTS_OF_WORDS: Final = "#%‰"
_SPACES: Final = re.compile(r"\s+")
_WORD: Final = re.compile(r"[^\W_]+(?:[.'’+#_-]*[^\W_]+)*[+#]*", re.UNICODE)

# Korean particles and the copula, the closed class that may follow a noun within its word. One noun may carry two or three
# of them (에서는, 한테까지도), and an informal name carries 이 before one (동건이는).
_PARTICLES: Final = (
    "은 는 이 가 을 를 의 에 에서 에게 에게서 한테 한테서 께 께서 와 과 랑 이랑 하고 도 만 부터 까지 마저 조차 밖에 처럼 같이 보다 으로 로 "
    "으로서 로서 으로써 로써 라고 이라고 라는 이라는 라면 이라면 이나 나 든지 이든지 이란 란 야 이야 아 여 이여 요 이요 입니다 이다 였다 이었다 "
    "인 인데 인지 이고 이며 네 들 씨 님 마다 대로 뿐 커녕 치고"
).split()
_PARTICLE_RUN: Final = re.compile("(?:" + "|".join(sorted(map(re.escape, _PARTICLES), key=len, reverse=True)) + "){1,4}")
_LONGEST_RUN: Final = 4 * max(map(len, _PARTICLES))


_LATIN: Final[frozenset[Script]] = frozenset({"latin"})
_NO_SCRIPT: Final[frozenset[Script]] = frozenset()


_SIGNS: Final = frozenset("-−.")


def nfc(text: str) -> str:
    """Canonical composition: what is stored and shown."""
    return unicodedata.normalize("NFC", text)


# Fullwidth and halfwidth forms and the ideographic space, each to its ordinary character.
_ORDINARY_WIDTH: Final = MappingProxyType(
    {
        code: unicodedata.normalize("NFKC", chr(code))
        for code in (0x3000, *range(0xFF00, 0xFFF0))
        if unicodedata.decomposition(chr(code)).startswith(("<wide>", "<narrow>"))
    }
)


def fold(text: str) -> str:
    """The form in which keys and namespaces are compared: NFC, width and case folded, white space collapsed."""
    if text.isascii():
        folded = " ".join(text.split()).lower()
        # One object for both: most keys are written as they are compared, and many tables hold them.
        return text if folded == text else folded
    return _SPACES.sub(" ", nfc(nfc(text).translate(_ORDINARY_WIDTH))).strip().casefold()


def is_punctuation(char: str) -> bool:
    """Whether ``char`` is punctuation (Unicode P*). A symbol says something: C++, 5 €, 😀."""
    return unicodedata.category(char)[0] == "P"


def is_blank(text: str) -> bool:
    """Whether there is nothing to see in ``text``: white space, control and format characters alone."""
    return all(unicodedata.category(char)[0] in "CZ" for char in text)


def normalized(content: str) -> str:
    """The form in which two memories are the same text: folded, outer punctuation stripped.

    A text of nothing but punctuation is compared as it stands, else all of those would be one; a mark that ends a word as part
    of it stays (C#, 5 %, -5).
    """
    folded = fold(content)
    start, end = 0, len(folded)
    while start < end and (is_punctuation(folded[start]) or folded[start].isspace()):
        if folded[start] in _SIGNS and start + 1 < end and folded[start + 1].isdigit():
            break
        start += 1
    while end > start and (is_punctuation(folded[end - 1]) or folded[end - 1].isspace()):
        if folded[end - 1] in _PARTS_OF_WORDS and end - 2 >= start and not is_punctuation(folded[end - 2]):
            break
        end -= 1
    return folded[start:end] or folded


def script_of_char(char: str) -> Script | None:
    """The script of one letter, or ``None`` for what belongs to every script."""
    if not char.isalpha():
        return None
    code = ord(char)
    if code < 0x250 or 0x1E00 <= code < 0x1F00 or 0xFF21 <= code <= 0xFF5A:
        return "latin"
    if 0x1100 <= code < 0x1200 or 0x3130 <= code < 0x3190 or 0xA960 <= code < 0xA980 or 0xAC00 <= code < 0xD800:
        return "hangul"
    if 0x3040 <= code < 0x3100 or 0x31F0 <= code < 0x3200 or 0xFF66 <= code <= 0xFF9F:
        return "kana"
    if 0x3400 <= code < 0xA000 or 0xF900 <= code < 0xFB00 or 0x20000 <= code < 0x40000:
        return "han"
    if 0x400 <= code < 0x530:
        return "cyrillic"
    return "other"


def scripts(text: str) -> frozenset[Script]:
    """The scripts whose letters occur in ``text``; empty for digits and punctuation alone."""
    if text.isascii():
        return _LATIN if any(map(str.isalpha, text)) else _NO_SCRIPT
    return frozenset(script for char in text if (script := script_of_char(char)) is not None)


def is_cjk(char: str) -> bool:
    """Whether one character of this script can be a word: Hangul, kana or Han."""
    return script_of_char(char) in {"hangul", "kana", "han"}


def usable_key(surface: str) -> bool:
    """A key says something: two characters or more, or one CJK character, and not punctuation or invisible characters alone."""
    if not any(char.isalnum() or unicodedata.category(char) == "So" for char in surface):
        return False
    return len(surface) >= 2 or is_cjk(surface)


def words(text: str) -> Iterator[re.Match[str]]:
    """The words of ``text`` at Unicode word boundaries, with inner dots, dashes and apostrophes kept."""
    return _WORD.finditer(text)


def word_count(surface: str) -> int:
    """Words separated by white space."""
    return len(surface.split())


def _boundary(text: str, index: int, inner: str) -> bool:
    """Whether the character at ``index`` cannot be part of the word whose neighbouring character is ``inner``."""
    if not 0 <= index < len(text):
        return True
    char = text[index]
    if not (char.isalnum() or unicodedata.category(char).startswith("M")):
        return True
    # Scripts that meet without a space are two words: "React는", "Python3" is one, "東京tower" two.
    a, b = script_of_char(char), script_of_char(inner)
    return a is not None and b is not None and a != b


def _run_of_hangul(text: str, start: int) -> str:
    """The Hangul from ``start`` on, cut where it is too long to be particles: a text without spaces costs what others do."""
    end, limit = start, min(len(text), start + _LONGEST_RUN + 1)
    while end < limit and script_of_char(text[end]) == "hangul":
        end += 1
    return text[start:end]


def _ends_at_boundary(text: str, end: int) -> bool:
    last = text[end - 1]
    if _boundary(text, end, last):
        return True
    if script_of_char(last) == "hangul":
        return _PARTICLE_RUN.fullmatch(_run_of_hangul(text, end)) is not None
    return script_of_char(last) in {"han", "kana"} and script_of_char(text[end]) in {"han", "kana"}


def _starts_at_boundary(text: str, start: int) -> bool:
    if _boundary(text, start - 1, text[start]):
        return True
    return script_of_char(text[start]) in {"han", "kana"} and script_of_char(text[start - 1]) in {"han", "kana"}


def literal_spans(folded_text: str, folded_surface: str) -> Iterator[tuple[int, int]]:
    """Where ``folded_surface`` stands in ``folded_text`` as a whole word or phrase (both already folded).

    Word boundaries are Unicode's; a Hangul surface may be followed by particles within its word ("동건이는" has "동건"); a Han
    or kana surface, whose script has no spaces, may stand anywhere if it has two characters or more.
    """
    if not folded_surface:
        return
    index = folded_text.find(folded_surface)
    while index >= 0:
        end = index + len(folded_surface)
        single = len(folded_surface) == 1
        if single and script_of_char(folded_surface) in {"han", "kana"}:
            whole = _boundary(folded_text, index - 1, folded_surface) and _boundary(folded_text, end, folded_surface)
        else:
            whole = _starts_at_boundary(folded_text, index) and _ends_at_boundary(folded_text, end)
        if whole:
            yield index, end
        index = folded_text.find(folded_surface, index + 1)


def occurs_in(folded_text: str, folded_surface: str) -> bool:
    """Whether the surface stands literally in the text; see `literal_spans`."""
    return next(literal_spans(folded_text, folded_surface), None) is not None


def candidate_spans(folded_text: str, max_words: int = 6, max_chars: int = 128) -> Iterator[tuple[int, int]]:
    """Every span of ``folded_text`` that could be a literal surface: the spans `literal_spans` would accept.

    Looking each of them up costs a constant per word of the text, where asking every key would cost a constant per key.
    """
    size = len(folded_text)
    if folded_text.isascii():
        # As below: among these characters a boundary is where no letter or digit follows one.
        inner = [False, *map(str.isalnum, folded_text), False]
        starts = [i for i in range(size) if not inner[i] and not folded_text[i].isspace()]
        ends = [i for i in range(1, size + 1) if not inner[i + 1] and not folded_text[i - 1].isspace()]
    else:
        starts = [i for i in range(size) if not folded_text[i].isspace() and _starts_at_boundary(folded_text, i)]
        ends = [i for i in range(1, size + 1) if not folded_text[i - 1].isspace() and _ends_at_boundary(folded_text, i)]
    first = 0
    for start in starts:
        while first < len(ends) and ends[first] <= start:
            first += 1
        spaces, seen = 0, start
        for position in range(first, len(ends)):
            end = ends[position]
            if end - start > max_chars:
                break
            spaces += sum(char.isspace() for char in folded_text[seen:end])
            seen = end
            if spaces >= max_words:
                break
            if end - start == 1 and script_of_char(folded_text[start]) in {"han", "kana"}:
                alone = _boundary(folded_text, start - 1, folded_text[start]) and _boundary(folded_text, end, folded_text[start])
                if not alone:
                    continue
            yield start, end


def particle_forms(folded_word: str) -> tuple[str, ...]:
    """A word and, when it is Hangul, each shorter form that leaves nothing but particles behind: 사과는 → 사과는, 사과, (사)."""
    if not folded_word or script_of_char(folded_word[-1]) != "hangul":
        return (folded_word,)
    first = max(1, len(folded_word) - _LONGEST_RUN)
    cuts = (folded_word[:cut] for cut in range(first, len(folded_word)) if _PARTICLE_RUN.fullmatch(folded_word[cut:]))
    return (folded_word, *cuts)
