"""Whether a text asks: by its question mark, by a question word, by the verb that comes first, or by asking to be told.

A text that does none of these tells or orders. Where a question word stands decides in English and Spanish: "where is the key" asks, "run
it when the key is there" does not; one preposition may stand before it ("on which days"). In Korean it may stand anywhere, unless a
word after it ends in -지 ("왜 실패하는지 찾아 줘" orders), and so with being told: "비밀번호 알려 줘" asks, "어디서 멈췄는지 알려 줘" orders. Han and
kana are not split into words: there the question word is enough.
"""

from __future__ import annotations

import re
from typing import Final

_MARKS: Final = re.compile("[?？؟]")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LEADING: Final = 2
_QUESTION_WORDS: Final = frozenset(
    "who whom whose which what when where why how qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuánta cuántos cuántas".split(),
)
_VERBS: Final = frozenset("am is are was were do does did has have had can could will would shall should may might must".split())
_CONTRACTED: Final = re.compile(r"['’](?:s|re|d|ll|ve|m)$")
# "Don't" forbids more often than it asks.
_NEGATED: Final = re.compile(r"(?!don).+n['’]t")
_KOREAN: Final = re.compile("(?:누구|누가|무엇|무슨|무얼|뭐|뭘|뭔|어디|언제|왜|어떻게|어떤|어느|얼마|몇)[가-힣]*")
_TELL: Final = re.compile(r"\W*(?:please\W+)?(?:tell|remind) (?:me|us)\b", re.IGNORECASE)
_KOREAN_TELL: Final = re.compile("(?:알려|가르쳐|말해)[가-힣]*")
_INDIRECT: Final = re.compile("(?<!까)지$")
_UNSPACED: Final = re.compile("[何誰谁哪吗嗎]|どこ|いつ|なぜ|どう|どの|どれ|いくら|いくつ|什么|什麼|怎么|怎麼|为什|為什|多少")


def asks(text: str) -> bool:
    """Whether ``text`` is written as a question. Nothing asks nothing."""
    if _MARKS.search(text) or _UNSPACED.search(text) or _TELL.match(text):
        return True
    words = [word.casefold() for word in _WORD.findall(text)]
    leading = [_CONTRACTED.sub("", word) for word in words[:_LEADING]]
    if any(word in _QUESTION_WORDS for word in leading) or (leading and (leading[0] in _VERBS or _NEGATED.fullmatch(leading[0]))):
        return True
    if any(map(_KOREAN_TELL.fullmatch, words)) and not any(map(_INDIRECT.search, words)):
        return True
    return any(
        _KOREAN.fullmatch(word) and not any(_INDIRECT.search(later) for later in words[place + 1 :]) for place, word in enumerate(words)
    )
