# SPDX-License-Identifier: Apache-2.0
"""Run a command; while it prints nothing, print every few seconds for how long it has run.

show_progress.py <name> <command...>
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

QUIET_SECONDS = 8.0


def relay(output: int, name: str, begun: float) -> None:
    """Copy ``output`` to the standard one until its end."""
    is_line_open = False
    while True:
        ready, _, _ = select.select([output], [], [], QUIET_SECONDS)
        if not ready:
            mark = f"[{name}: {time.monotonic() - begun:.0f} s]"
            os.write(1, f"\n{mark}\n".encode() if is_line_open else f"{mark}\n".encode())
            is_line_open = False
            continue
        text = os.read(output, 1 << 16)
        if not text:
            return
        is_line_open = not text.endswith(b"\n")
        while text:
            text = text[os.write(1, text) :]


def main() -> int:
    name, *command = sys.argv[1:]
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        relay(process.stdout.fileno(), name, begun)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
