"""Whether a text asks (by its question mark, a question word, the verb that comes first, or by asking to be told) or only names something.

A text that does neither tells or orders. Where a question word stands decides in English and Spanish: "where is the key" asks, "run
it when the key is there" does not; one preposition may stand before it ("on which days"). In Korean it may stand anywhere, unless a
word after it ends in -지 ("왜 실패하는지 찾아 줘" orders), and so with being told: "비밀번호 알려 줘" asks, "어디서 멈췄는지 알려 줘" orders. Han and
kana are not split into words: there the question word is enough.
"""

from __future__ import annotations

import re
from typing import Final

_MARKS: Final = re.compile("[?？؟]")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_COMPOUND: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
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
_DETERMINERS: Final = frozenset("the a an this these those my our your his her its their every each all any some".split())
_CONNECTING: Final = frozenset(
    "of in on at for from to with by per and or about between against during after before around under over near into without within since vs".split(),
)
# Whoever writes one of these says, asks or orders something, and does not just name it.
_SAYING: Final = _VERBS | _QUESTION_WORDS | frozenset(
    "i you he she it we they me us them him that there here be been being if because while whether until please let yes no ok okay not never"
    " so then instead again also just cannot done gets goes seems looks".split(),
)
_ORDERS: Final = frozenset(
    "add adjust append apply ask avoid build bump cache call change check clean clear close commit compare compile configure continue convert copy"
    " correct create debug delete deploy describe disable document draw drop edit enable ensure explain export extend extract fetch fill find finish"
    " fix format generate get give go handle help hide implement import improve include increase inline insert install investigate keep launch limit"
    " list load look make measure merge migrate mock move open optimise optimize parse pass pin point print profile publish pull push put raise read"
    " rebase redo reduce refactor release remind remove rename reopen replace report reproduce rerun reset restart restore return reverse revert review rewrite"
    " roll run save scan search send set ship show simplify skip sort split squash start stop store submit summarise summarize swap switch take tell"
    " test throw tidy trace translate trim try turn undo uninstall update upgrade upload use validate verify wait wrap write"
    " bind decrypt encrypt grant inject kill lint mount patch ping query rewire revoke rework rotate seed squeeze sudo unify wire".split(),
)
_OWNERS: Final = ("'s", "’s")
_PHRASE_WORDS: Final = 12
# Korean verbs end so, and few nouns do: open syllables with these vowels, and a few others.
_VERB_VOWELS: Final = frozenset("ㅏㅐㅓㅔㅕㅖㅘㅙㅝㅞ")
_VOWELS: Final = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_VERB_ENDS: Final = frozenset("요죠니지군오려함음됨임줄")
_SYLLABLES: Final = 0xAC00
# Nouns of doing: with one of them at the end a phrase is as well an order.
_KOREAN_DOING: Final = re.compile("(?:시작|작성|정리|삭제|수정|추가|변경|배포|실행|테스트|확인|검토|구현|제거|분리|적용|설치|업데이트|리팩터링|리팩토링|개선|생성|교체|복구|점검)$")
_HANGUL: Final = re.compile("[가-힣]")
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
    indirect = max((place for place, word in enumerate(words) if _INDIRECT.search(word)), default=-1)
    return any(_KOREAN.fullmatch(word) for word in words[max(indirect, 0) :])


def names_something(text: str) -> bool:
    """Whether ``text`` is a phrase that only names what is sought ("dates of our hut reservation"): nothing is said, asked or ordered.

    In English its articles stand in front or behind a connecting word, since one that follows a noun follows a verb ("fix the build");
    it does not begin with a verb that orders or has been done, nor with an article unless "of" or "'s" follows. In Korean it does not end in a verb, nor in a noun of doing.
    """
    if text.rstrip().endswith((".", "!", "…")) or _MARKS.search(text):
        return False
    words = [word.casefold() for word in _COMPOUND.findall(text)]
    if not 2 <= len(words) <= _PHRASE_WORDS or not _SAYING.isdisjoint(words):
        return False
    if words[0] in _ORDERS or words[0].endswith(("ed", "ing")):
        return False
    if any("'" in word or "’" in word for word in words if not word.endswith(_OWNERS)):
        return False
    if _HANGUL.search(words[-1]):
        return not _ends_like_a_korean_verb(words[-1]) and _KOREAN_DOING.search(words[-1]) is None
    if words[0] in _DETERMINERS and "of" not in words[2:4] and not any(word.endswith(_OWNERS) for word in words[1:3]):
        return False
    articles = [place for place, word in enumerate(words) if word in _DETERMINERS and place]
    return not _CONNECTING.isdisjoint(words) and all(words[place - 1] in _CONNECTING | _DETERMINERS for place in articles)


def _ends_like_a_korean_verb(word: str) -> bool:
    last = word[-1]
    if last in _VERB_ENDS or not _HANGUL.fullmatch(last):
        return last in _VERB_ENDS
    vowel, closing = divmod((ord(last) - _SYLLABLES) % 588, 28)
    return not closing and _VOWELS[vowel] in _VERB_VOWELS
