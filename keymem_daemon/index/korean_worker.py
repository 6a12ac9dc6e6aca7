"""The child process that holds Kiwi: one JSON list of texts a line in, one line of their morphemes out, until the input ends.

It knows nothing of keymem but the shape of a morpheme; nothing else may be imported here, it is started while others wait.
"""

from __future__ import annotations

import json
import os
import sys

from keymem_daemon.index.korean import KiwiHere


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not look like an answer.
    os.dup2(2, 1)
    kiwi = KiwiHere()
    for line in sys.stdin.buffer:
        answers.write(json.dumps(kiwi.analyse(json.loads(line)), separators=(",", ":")).encode("ascii") + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
