"""Korean particles, and the forms of 하다 and 되다 behind a noun, as closed lists: what the tokenizer goes by until Kiwi is there.

The first questions of a daemon are read so: Kiwi takes seconds to load. A name that ends like such a form (지한) loses it as well, in
memories and questions alike, until both are read again.
"""

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
_VERB_FORMS: Final[tuple[str, ...]] = tuple(
    sorted(
        """
        한 할 해 하는 하고 하면 하며 하기 하려 하려고 하게 하지 하던 하자 하니 하나 하나요 해요 해서 해도 해야 했다 했어 했어요 했던 했지 했는 했니 했나 했나요
        합니다 합니까 했습니다 했습니까 할까 할까요 할지 한다 한가 한가요 하다
        된 될 돼 되는 되고 되면 되며 되기 되게 되지 되던 되어 되나 되나요 돼요 돼서 됐다 됐어 됐어요 됐던 됐나 됐나요 되었다 되었어 되었던
        됩니다 됩니까 되었습니다 됐습니다 될까 될까요 된다 되다
        """.split(),
        key=len,
        reverse=True,
    ),
)
_VERBS_ALONE: Final = frozenset({*_VERB_FORMS, *"싶어 싶어요 싶은 있어 있어요 있는 있나 있니 없어 없어요 없는 준 줘 줬어".split()})
_AFTER_CONSONANT: Final = frozenset("은을과이으아")
_AFTER_VOWEL: Final = frozenset("는를와가랑라야여")
_RIEUL: Final = 8


def is_particle(word: str) -> bool:
    """Whether ``word`` is one of the particles."""
    return word in _PARTICLES


def is_verb_alone(word: str) -> bool:
    """Whether ``word`` is a form of 하다, 되다 or another verb that says nothing by itself."""
    return word in _VERBS_ALONE


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
    """``word`` without its longest trailing particle, if two syllables are left (or one, of a word of two).

    Or without the form of 하다 or 되다 that it ends in, if two syllables are left.
    """
    for form in _VERB_FORMS:
        if len(word) - len(form) > 1 and word.endswith(form):
            return word[: -len(form)]
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
