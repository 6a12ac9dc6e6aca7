"""The character classes by which the tokenizer cuts text into runs, as fragments of regular expressions.

Ranges only. They follow Unicode blocks, so that what counts as one script does not change with the version of a library.
"""

from __future__ import annotations

from typing import Final

HANGUL: Final = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
HIRAGANA: Final = "\u3041-\u3096\u309d\u309e"
KATAKANA: Final = "\u30a1-\u30fa\u30fc-\u30fe\u31f0-\u31ff\uff66-\uff9f"
HAN: Final = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Written without spaces: Thai, Lao, Myanmar, Khmer.
UNSPACED: Final = "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109d\u1780-\u17d3"
# Combining marks are part of the word they stand in, which \w denies.
MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0903\u093a-\u094f\u0951-\u0957"
    "\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57"
    "\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0dca-\u0ddf\u0f71-\u0f84"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0\u302a-\u302f\u3099\u309a\ufe20-\ufe2f"
)
