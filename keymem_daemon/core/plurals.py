"""English plurals, and nothing else of English: the lightest stemming that two keys may be merged by.

A stemmer for search may conflate "university" with "universe"; here that would lose meaning for good. So only the plural
ending of the last word is taken off, only when that word is written in lower-case ASCII letters (a capital may begin a name:
"Adams", "Windows"), and words whose plural is another word than its singular ("glasses", "news", "minutes") are left alone.
The result is a key for comparison, never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from keymem_daemon.core.text import fold

__all__ = ["singular", "stem_key"]

# Words in -s that are no plurals, or whose plural means something else than their singular.
_KEPT: Final = frozenset(
    """
    news series species means physics mathematics maths economics politics ethics graphics analytics logistics statistics
    robotics genetics athletics gymnastics electronics mechanics dynamics linguistics aerobics acoustics optics basics
    glasses sunglasses eyeglasses goods customs arms minutes savings earnings works stakes odds overalls remains proceeds
    premises grounds heads hives shingles spectacles brains manners spirits forces quarters headquarters barracks colors
    colours clothes pants shorts jeans trousers pajamas pyjamas scissors pliers tongs tights leggings briefs boxers slacks
    windows rails pandas nats https aids corps darts checkers dominoes bowls billiards blues greens browns whites reds blacks
    christmas texas kansas vegas dallas arkansas athens paris mars venus wales naples honduras philippines netherlands
    gas bus plus bias canvas atlas alias pancreas lens chaos cosmos ethos pathos kudos asbestos rhinos macos nixos centos
    kubernetes postgres keras jenkins sphinx redis aws axes bases lives leaves saws does goes thus yes this always perhaps
    besides sometimes afterwards towards backwards forwards overseas whereas across diabetes rabies measles mumps herpes rickets
    lunes martes jueves viernes gafas esposas gracias tijeras vacaciones lentes celos modales
    teams slides notes contents sheets keynotes assets thanks riches looks directions communications
    """.split()
)

_IRREGULAR: Final[Mapping[str, str]] = MappingProxyType(
    dict(
        pair.split("/")
        for pair in """
        men/man women/woman children/child mice/mouse teeth/tooth feet/foot geese/goose oxen/ox firemen/fireman
        knives/knife wives/wife housewives/housewife wolves/wolf shelves/shelf bookshelves/bookshelf halves/half loaves/loaf
        thieves/thief calves/calf scarves/scarf hooves/hoof elves/elf selves/self
        criteria/criterion phenomena/phenomenon indices/index matrices/matrix vertices/vertex appendices/appendix
        analyses/analysis crises/crisis diagnoses/diagnosis
        oases/oasis stimuli/stimulus cacti/cactus alumni/alumnus nuclei/nucleus
        buses/bus gases/gas viruses/virus statuses/status bonuses/bonus campuses/campus censuses/census choruses/chorus
        circuses/circus focuses/focus geniuses/genius minuses/minus octopuses/octopus pluses/plus sinuses/sinus lotuses/lotus
        biases/bias canvases/canvas atlases/atlas aliases/alias irises/iris lenses/lens cactuses/cactus walruses/walrus
        quizzes/quiz waltzes/waltz blitzes/blitz topazes/topaz
        menus/menu gurus/guru emus/emu tofus/tofu apis/api taxis/taxi skis/ski kiwis/kiwi wikis/wiki emojis/emoji
        safaris/safari bikinis/bikini alibis/alibi
        movies/movie cookies/cookie calories/calorie zombies/zombie selfies/selfie hoodies/hoodie smoothies/smoothie
        brownies/brownie veggies/veggie genies/genie rookies/rookie pixies/pixie prairies/prairie birdies/birdie
        foodies/foodie newbies/newbie freebies/freebie cuties/cutie hippies/hippie indies/indie aunties/auntie
        doggies/doggie sorties/sortie lassies/lassie collies/collie talkies/talkie goodies/goodie
        ties/tie pies/pie lies/lie dies/die neckties/necktie magpies/magpie
        caches/cache aches/ache headaches/headache toothaches/toothache stomachaches/stomachache backaches/backache
        heartaches/heartache earaches/earache niches/niche avalanches/avalanche mustaches/mustache moustaches/moustache
        quiches/quiche psyches/psyche brioches/brioche cliches/cliche
        shoes/shoe toes/toe canoes/canoe oboes/oboe foes/foe hoes/hoe horseshoes/horseshoe snowshoes/snowshoe aloes/aloe
        """.split()
    )
)

_SHORTEST: Final = 4
_LONG_PLURALS: Final = ("sses", "shes", "ches", "xes", "oes")


def singular(word: str) -> str:
    """The singular of a lower-case English word, or the word itself when it is none or in doubt."""
    if word in _KEPT:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < _SHORTEST or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("heses"):
        return word[:-2] + "is"
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(_LONG_PLURALS):
        return word[:-2]
    return word[:-1]


def stem_key(surface: str) -> str:
    """``surface`` folded, its last word in the singular; equal for two keys that differ only in number."""
    head, space, last = surface.strip().rpartition(" ")
    if last.isascii() and last.isalpha() and last.islower():
        return fold(head + space + singular(last))
    return fold(surface)
