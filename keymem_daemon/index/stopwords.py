"""Words that carry no topic: closed lists, written for this project, and nothing else.

A stop word is left out of documents and queries alike. Question words are in the lists because memories are statements; negations
are in because BM25 cannot use them. Names that are spelled like stop words survive by their capitals (see ``KEPT_IN_CAPITALS``).
"""

from __future__ import annotations

from typing import Final

ENGLISH: Final[frozenset[str]] = frozenset(
    """
    a an the this that these those such
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
    it its itself they them their theirs themselves one ones oneself
    who whom whose which what when where why how whoever whatever whichever whenever wherever
    am is are was were be been being do does did done doing have has had having
    can could may might must shall should will would ought cannot
    and or but nor so yet if then else than as because since while although though unless until whether
    of in on at by for with from to into onto upon about above across after against along among around before behind below
    beneath beside besides between beyond despite down during except inside near off out outside over past per through
    throughout toward towards under up via within without
    not no also too very just only even still ever never again already almost quite rather really
    here there now any some all both each every either neither other others another own same
    more most much many few less least several
    let lets get gets got getting please
    etc eg ie vs
    www
    """.split(),
)

# Written in capitals these are names (the technology, the country, the organisation), not pronouns.
KEPT_IN_CAPITALS: Final[frozenset[str]] = frozenset({"IT", "US", "WHO", "OR", "ME", "IN"})

KOREAN: Final[frozenset[str]] = frozenset(
    """
    나 너 저 우리 저희 너희 당신 그대 자기 자신 그 그녀 그들 이 이것 그것 저것 이거 그거 저거 이곳 그곳 저곳 여기 거기 저기
    누구 누가 무엇 뭐 무얼 뭘 어디 언제 왜 어떻게 어떤 어느 무슨 얼마 몇 아무
    것 거 게 수 등 때문 및 또 또는 그리고 그러나 하지만 그런데 그래서 따라서 즉 혹은 만약 만일
    더 덜 매우 아주 너무 정말 진짜 참 꽤 좀 조금 다시 이미 아직 항상 늘 자주 가끔 안 못 잘 다 모두 모든 각 여러 다른 같은
    하다 되다 있다 없다 이다 아니다 않다 싶다 보다 주다 같다 그렇다 이렇다 저렇다 어떻다 어떠하다 말하다 대하다 위하다 통하다 의하다 관하다
    때 중 간 내 외 전 후 뒤 앞 동안 정도 경우 부분 관련 대해 위해 통해
    """.split(),
)
