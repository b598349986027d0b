# SPDX-License-Identifier: Apache-2.0
"""Client of PMI-2, which srun --mpi=pmi2 serves at PMI_FD.

The first request is a line, as in PMI-1. All later messages have a length of six digits, and then
``name=value;`` words, of which the first is the command; ``;;`` stands for a semicolon.
"""

from __future__ import annotations

import os

from pccl.errors import UnavailableError
from pccl.launchers.pmi1 import words_of
from pccl.launchers.wire import LONGEST_ANSWER, Wire

__all__ = ["Pmi2Store"]

_DIGITS = 6


class Pmi2Store:
    """Key-value store of a PMI-2 server."""

    def __init__(self, wire: Wire, rank: int, deadline: float) -> None:
        self._wire = wire
        wire.send(b"cmd=init pmi_version=2 pmi_subversion=0\n", deadline)
        line = wire.receive_line(deadline)
        answer = words_of(line)
        if answer.get("cmd") != "response_to_init" or answer.get("rc", "0") != "0":
            raise wire.wrong(line, "cmd=response_to_init with rc=0")
        if answer.get("pmi_version") != "2":
            raise wire.wrong(line, "pmi_version=2")
        self._job = os.environ.get("PMI_JOBID", "")
        self._call("fullinit", deadline, pmijobid=self._job, pmirank=rank, threaded="FALSE")

    def put(self, key: str, value: str, deadline: float) -> None:
        """Set a key."""
        self._call("kvs-put", deadline, key=key, value=value)

    def fence(self, deadline: float) -> None:
        """Wait at the server's fence."""
        self._call("kvs-fence", deadline)

    def get(self, key: str, deadline: float) -> str:
        """Return the value of a key."""
        answer = self._call("kvs-get", deadline, jobid=self._job, srcid=-1, key=key)
        if answer.get("found") != "TRUE" or "value" not in answer:
            raise UnavailableError(f"{self._wire.server} has no value of {key} after the fence")
        return answer["value"]

    def close(self, deadline: float) -> None:
        """End the session."""
        self._call("finalize", deadline)
        self._wire.close()

    def _call(self, command: str, deadline: float, **words: object) -> dict[str, str]:
        """Send a command, and return the words of the answer, of which the first must fit."""
        named = "".join(f"{name}={value};" for name, value in words.items())
        body = f"cmd={command};{named}".encode("ascii")
        self._wire.send(f"{len(body):{_DIGITS}d}".encode("ascii") + body, deadline)
        text = self._receive(deadline)
        answer = _words_of(text)
        if answer.get("cmd") != f"{command}-response":
            raise self._wire.wrong(text, f"cmd={command}-response")
        if answer.get("rc", "0") != "0":
            raise UnavailableError(
                f"{self._wire.server} refused cmd={command}: rc={answer['rc']}, "
                f"{answer.get('errmsg', 'without a reason')}"
            )
        return answer

    def _receive(self, deadline: float) -> str:
        header = self._wire.text_of(self._wire.receive(_DIGITS, deadline))
        length = header.strip()
        if not (length.isascii() and length.isdigit() and 0 < int(length) <= LONGEST_ANSWER):
            raise self._wire.wrong(header, f"a length of 1 to {LONGEST_ANSWER} in {_DIGITS} digits")
        return self._wire.text_of(self._wire.receive(int(length), deadline))


def _words_of(text: str) -> dict[str, str]:
    """Return the words of a message by name."""
    pairs = (word.partition("=") for word in text.replace(";;", "\0").split(";"))
    return {name: value.replace("\0", ";") for name, equals, value in pairs if equals}
