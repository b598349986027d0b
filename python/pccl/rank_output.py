# SPDX-License-Identifier: Apache-2.0
"""Passes on what ranks print, line by line, behind the number of the rank."""

from __future__ import annotations

import codecs
import io
import locale
import os
import selectors
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO, TextIO

__all__ = ["RankOutput"]

_AT_ONCE = 1 << 16  # bytes
_MOST_LEFT = 1 << 20  # bytes that a pipe may hold
_LONGEST_LINE = 1 << 16  # characters; a longer one is passed on in several


class RankOutput:
    """A thread that reads pipes of ranks and writes to this process's stdout and stderr."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = os.pipe()
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._streams: list[_Stream] = []
        self._broken: dict[int, OSError] = {}  # by the id of the sink
        self._thread = threading.Thread(target=self._run, name="pccl-ranks", daemon=True)

    @property
    def fault(self) -> OSError | None:
        """Why nothing can be written any more to one of the two, BrokenPipeError for example."""
        return next(iter(self._broken.values()), None)

    def add(self, rank: int, source: IO[bytes], sink: TextIO | None) -> None:
        """Pass on what comes from a pipe, which this closes."""
        os.set_blocking(source.fileno(), False)
        self._streams.append(_Stream(rank, source, sink))

    def start(self) -> None:
        """Begin, when all pipes have been added."""
        for stream in self._streams:
            self._selector.register(stream.source, selectors.EVENT_READ, stream)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Pass on what is in the pipes now, whoever still holds their other ends."""
        os.close(self._woken)
        if not self._thread.ident:
            return
        self._thread.join(seconds)
        if not self._thread.is_alive():  # else something takes nothing of what it writes
            self._selector.close()
            os.close(self._wake)
            for stream in self._streams:
                stream.source.close()

    def _run(self) -> None:
        is_over = False
        while not is_over:
            for key, _ in self._selector.select():
                if key.data is None:
                    is_over = True
                elif not self._take(key.data):
                    self._selector.unregister(key.fileobj)
        for stream in self._streams:
            for _ in range(
                _MOST_LEFT // _AT_ONCE
            ):  # and not what a process that is left goes on with
                if not self._take(stream):
                    break
            self._write(stream, stream.rest())

    def _take(self, stream: _Stream) -> bool:
        """Pass on one piece; False where there is none."""
        try:
            data = stream.source.read(_AT_ONCE)
        except ValueError:
            return False
        if data:
            self._write(stream, stream.lines_of(data))
        return bool(data)

    def _write(self, stream: _Stream, text: str) -> None:
        sink = stream.sink
        if not text or sink is None or id(sink) in self._broken:
            return
        try:
            sink.write(_writable(text, sink))
            sink.flush()
        except OSError as error:
            self._broken[id(sink)] = error
        except ValueError:  # it is closed
            stream.sink = None


def _writable(text: str, sink: TextIO) -> str:
    """Replace what the encoding of a sink does not have by escapes."""
    encoding = getattr(sink, "encoding", None)
    if text.isascii() or not encoding:
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


class _Stream:
    """What one rank prints to one of the two."""

    def __init__(self, rank: int, source: IO[bytes], sink: TextIO | None) -> None:
        self.source = source
        self.sink = sink
        self._prefix = f"[{rank}] "
        decoder = codecs.getincrementaldecoder(locale.getpreferredencoding(False))("replace")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._held = ""

    def lines_of(self, data: bytes) -> str:
        """Return the lines that end here; the beginning of the next one is held back."""
        lines = (self._held + self._decoder.decode(data)).split("\n")
        last = lines.pop()
        while len(last) > _LONGEST_LINE:
            lines.append(last[:_LONGEST_LINE])
            last = last[_LONGEST_LINE:]
        self._held = last
        return self._text_of(lines)

    def rest(self) -> str:
        """Return a last line that has no end."""
        last = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        return self._text_of(last.removesuffix("\n").split("\n")) if last else ""

    def _text_of(self, lines: list[str]) -> str:
        return "".join(f"{self._prefix}{line}\n" for line in lines)
