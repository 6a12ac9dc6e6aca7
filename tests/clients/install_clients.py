"""Installs the real clients from npm: ``python tests/clients/install_clients.py DIR``. About 800 MB.

The versions are pinned, so that a red test means a change of ours. npm does not run the post-install script of Claude
Code, so the programs are called where they lie and not through ``node_modules/.bin``. Neither of them needs Node.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("@anthropic-ai/claude-code@2.1.332", "@openai/codex@0.171.0")
CLAUDE_CODE = "node_modules/@anthropic-ai/claude-code-*/claude"
CODEX = "node_modules/@openai/codex-*/vendor/*/bin/codex"


def installed(directory: Path, pattern: str) -> Path | None:
    """The program that lies below ``directory`` as ``pattern`` says, ``None`` when there is none."""
    return next((found for found in sorted(directory.glob(pattern)) if found.is_file()), None)


def main() -> int:
    """Install both and say where they are."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python tests/clients/install_clients.py DIR\n")
        return 64
    directory = Path(sys.argv[1]).resolve()
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write("npm is not on PATH\n")
        return 1
    directory.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--prefix", directory, *PACKAGES], check=False)
    found = [installed(directory, pattern) for pattern in (CLAUDE_CODE, CODEX)]
    if done.returncode != 0 or None in found:
        sys.stderr.write("the clients were not installed\n")
        return 1
    lines = [*map(str, found), f"now: KEYMEM_TEST_CLIENTS={directory} python -m pytest tests/clients"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
