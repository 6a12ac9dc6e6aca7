"""Korean particles as a closed list: what the tokenizer goes by until the morphological analyser is there."""

from __future__ import annotations

from typing import Final

# Longest first, so that 에서는 goes as one and not as 는 alone.
_PARTICLES: Final[tuple[str, ...]] = tuple(
    sorted(
        """
        은 는 이 가 을 를 의 에 와 과 도 만 로 으로 랑 이랑 나 이나 라 이라 야 이야 아 여
        에서 에게 에게서 한테 한테서 께 께서 부터 까지 처럼 같이 보다 마다 조차 마저 밖에 하고 이며 며 이고 고
        에는 에도 에만 에서는 에서도 에서만 에게는 에게도 한테는 한테도 으로는 로는 으로도 로도 으로서 로서 으로써 로써 으로부터 로부터
        까지는 까지도 부터는 만은 만이 만을 와는 과는 와의 과의 에의 에서의 으로의 로의 이라는 라는 이라고 라고 이란 란
        이다 입니다 이에요 예요 이었다 였다 이었습니다 였습니다 인가 인지 이지 이죠
        이는 이가 이를 이의 이도 이랑은 이와 이한테 이에게
        """.split(),
        key=len,
        reverse=True,
    ),
)
_AFTER_CONSONANT: Final = frozenset("은을과이으아")
_AFTER_VOWEL: Final = frozenset("는를와가랑라야여")
_RIEUL: Final = 8


def is_particle(word: str) -> bool:
    """Whether ``word`` is one of the particles."""
    return word in _PARTICLES


def ends_closed(word: str) -> bool:
    """Whether the last Hangul syllable of ``word`` ends in a consonant."""
    return _final(word) > 0


def _final(word: str) -> int:
    return (ord(word[-1]) - ord("가")) % 28 if "가" <= word[-1] <= "힣" else 0


def _may_follow(noun: str, particle: str) -> bool:
    # Half of the particles have two forms, one after a consonant and one after a vowel: 사과 is not 사 + 과.
    final = _final(noun)
    if particle[0] in _AFTER_CONSONANT:
        return final > 0
    if particle[0] in _AFTER_VOWEL:
        return final == 0
    return particle[0] != "로" or final in {0, _RIEUL}


def bare_noun(word: str) -> str:
    """``word`` without its longest trailing particle, if two syllables are left (or one, of a word of two)."""
    for particle in _PARTICLES:
        left = len(word) - len(particle)
        if (
            left >= min(2, len(word) - 1)
            and left > 0
            and word.endswith(particle)
            and _may_follow(word[:left], particle)
        ):
            return word[:left]
    return word
