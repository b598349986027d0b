# SPDX-License-Identifier: Apache-2.0
"""Forwarding of the output of ranks, line by line, with the rank as prefix."""

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
_MOST_LEFT = 1 << 20  # bytes, the maximum capacity of a pipe
_LONGEST_LINE = 1 << 16  # characters; a longer line is split


class RankOutput:
    """Thread that copies pipes of ranks to stdout and stderr of this process."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        try:
            self._wake, self._woken = os.pipe()
        except OSError:
            self._selector.close()
            raise
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._streams: list[_Stream] = []
        self._broken: dict[int, OSError] = {}  # by the id of the sink
        self._thread = threading.Thread(target=self._run, name="pccl-ranks", daemon=True)

    @property
    def fault(self) -> OSError | None:
        """Error after which stdout or stderr is no longer writable, such as BrokenPipeError."""
        return next(iter(self._broken.values()), None)

    def add(self, rank: int, source: IO[bytes], sink: TextIO | None) -> None:
        """Forward the output of a pipe, which this object closes."""
        os.set_blocking(source.fileno(), False)
        self._streams.append(_Stream(rank, source, sink))

    def start(self) -> None:
        """Start the thread, after all pipes have been added."""
        for stream in self._streams:
            self._selector.register(stream.source, selectors.EVENT_READ, stream)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Forward the present content of the pipes, even if their other ends are still open."""
        os.close(self._woken)
        if self._thread.ident:
            self._thread.join(seconds)
        if not self._thread.is_alive():  # otherwise a write still blocks
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
            ):  # a limit, because a surviving process may continue to write
                if not self._take(stream):
                    break
            self._write(stream, stream.rest())

    def _take(self, stream: _Stream) -> bool:
        """Forward one piece of output; return False if there is none."""
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
        except ValueError:  # the sink is closed
            stream.sink = None


def _writable(text: str, sink: TextIO) -> str:
    """Replace characters that the encoding of a sink lacks by escapes."""
    encoding = getattr(sink, "encoding", None)
    if text.isascii() or not encoding:
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


class _Stream:
    """Output of one rank to stdout or stderr."""

    def __init__(self, rank: int, source: IO[bytes], sink: TextIO | None) -> None:
        self.source = source
        self.sink = sink
        self._prefix = f"[{rank}] "
        decoder = codecs.getincrementaldecoder(locale.getpreferredencoding(False))("replace")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._held = ""

    def lines_of(self, data: bytes) -> str:
        """Return the complete lines; the beginning of the next line is kept."""
        lines = (self._held + self._decoder.decode(data)).split("\n")
        last = lines.pop()
        while len(last) > _LONGEST_LINE:
            lines.append(last[:_LONGEST_LINE])
            last = last[_LONGEST_LINE:]
        self._held = last
        return self._text_of(lines)

    def rest(self) -> str:
        """Return the last, unterminated line."""
        last = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        return self._text_of(last.removesuffix("\n").split("\n")) if last else ""

    def _text_of(self, lines: list[str]) -> str:
        return "".join(f"{self._prefix}{line}\n" for line in lines)
