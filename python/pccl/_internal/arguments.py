# SPDX-License-Identifier: Apache-2.0
"""Errors for wrong arguments: one line that names the argument and its value.

The extension modules call :func:`refusal` after a failed call; :func:`require` is for functions
written in Python.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["refusal", "require", "require_int", "shown"]

_LONGEST_SHOWN = 60
_C_INT_MAX = 2**31 - 1
_EMPTY = object()


def shown(value: object) -> str:
    """Return the text of a value for messages: at most 60 characters, and its type."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # raised by the code of the value
        text = object.__repr__(value)
    if len(text) > _LONGEST_SHOWN:
        text = f"{text[: _LONGEST_SHOWN - 3]}..."
    return f"{text} ({type(value).__name__})"


def require(value: object, kind: type | tuple[type, ...], argument: str, right: str) -> None:
    """Raise TypeError for a value of another type.

    Parameters
    ----------
    value
        Value of the argument.
    kind
        Accepted types.
    argument
        Name of the parameter.
    right
        Text for the accepted types: ``"a pccl.Communicator"``.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{argument} is {shown(value)}: it must be {right}")


def require_int(value: object, argument: str) -> None:
    """Raise TypeError for a value that is not an integer.

    Parameters
    ----------
    value
        Value of the argument.
    argument
        Name of the parameter.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{argument} is {shown(value)}: it must be an int")


def refusal(text: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    """Return the error for arguments that a function of an extension module rejected.

    Parameters
    ----------
    text
        Message of pybind11: all signatures of the function, with types.
    arguments, named
        Positional and keyword arguments of the call.
    """
    name, _, rest = text.partition("(): incompatible ")
    if rest.startswith("constructor"):
        arguments = arguments[1:]  # the object under construction
    faults = [
        _Signature.parse(line).fault(_qualified(name, line), arguments, named)
        for line in re.findall(r"^ +\d+\. (.+)$", rest, re.MULTILINE)
    ]
    # Choose the overload with the most correct leading arguments.
    _, fault = max(faults, key=lambda each: each[0], default=(0, f"{name}() takes other arguments"))
    return TypeError(fault)


class _Parameter(NamedTuple):
    name: str
    type: str
    is_required: bool

    def fault(self, value: object) -> str:
        """Return the reason why the parameter rejects the value; empty if the type is right."""
        if _fits(value, self.type):
            return ""
        return f"{self.name} is {shown(value)}: it must be {_in_words(self.type)}"


class _Signature(NamedTuple):
    positional: list[_Parameter]
    keywords: list[_Parameter]
    takes_more: bool

    @classmethod
    def parse(cls, line: str) -> _Signature:
        """Parse ``(self: pccl._core.Communicator, x: object, *, timeout: float | None = None)``."""
        positional: list[_Parameter] = []
        keywords: list[_Parameter] = []
        takes_more = False
        into = positional
        for part in _parts(_inside(line[line.index("(") :]), ","):
            if part == "*":
                into = keywords
            elif part.startswith("*"):
                takes_more = True
            elif part != "/":
                name, _, rest = part.partition(": ")
                kind, *default = _parts(rest, "=")
                into.append(_Parameter(name, kind, not default))
        return cls(positional, keywords, takes_more)

    def fault(
        self, function: str, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[int, str]:
        """Return the number of right arguments before the first wrong one, and the message."""
        given = dict(zip((each.name for each in self.positional), arguments, strict=False))
        own = [each for each in self.positional if each.name != "self"]
        if len(arguments) > len(self.positional) and not self.takes_more:
            is_method = len(own) < len(self.positional)
            return 0, (
                f"{function}() takes at most {len(own)} positional arguments, and"
                f" {len(arguments) - is_method} were given"
            )
        every = {each.name: each for each in [*self.positional, *self.keywords]}
        for name, value in named.items():
            if name in given:
                return 0, f"{function}() got {name} twice: by its place and by its name"
            if name not in every and not self.takes_more:
                known = ", ".join(each for each in every if each != "self") or "none"
                return 0, f"{function}() has no parameter {name}; it has: {known}"
            given[name] = value
        for count, each in enumerate(every.values()):
            if each.name not in given:
                if each.is_required:
                    return count, f"{function}() lacks the argument {each.name}"
                continue
            if fault := each.fault(given[each.name]):
                return count, f"{function}(): {fault}"
        return len(every), f"{function}(): {_out_of_range(every, given)}"


def _qualified(function: str, line: str) -> str:
    """Return ``Communicator.all_reduce`` for a method of a public class."""
    before, _, inside = line.partition("(")
    if function == "__init__":
        return before.rpartition(".")[2].lstrip("_")
    found = re.match(r"self: [\w.]*?(\w+)[,)]", inside)
    return f"{found[1]}.{function}" if found and not found[1].startswith("_") else function


def _out_of_range(every: dict[str, _Parameter], given: dict[str, Any]) -> str:
    """Return a message for the integer that is out of range in C++, where all types are right."""
    for name, value in given.items():
        if name in every and "int" in every[name].type.lower() and isinstance(value, int):
            if value < 0:
                return f"{name} is {value}: it must be 0 or more"
            if value > _C_INT_MAX:
                return f"{name} is {value}: it is too large"
    values = ", ".join(f"{name}={shown(value)}" for name, value in given.items() if name != "self")
    return f"it does not take {values}"


def _inside(line: str) -> str:
    """Return the text between the parentheses of a signature."""
    depth = 0
    for at, char in enumerate(line):
        depth += (char in "([") - (char in ")]")
        if depth == 0:
            return line[1:at]
    return line[1:]


def _parts(text: str, separator: str) -> list[str]:
    """Split at separators outside of brackets and quotes."""
    parts, begin, depth, quote = [], 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == separator and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
        else:
            depth += (char in "([{<") - (char in ")]}>")
    parts.append(text[begin:].strip())
    return [part for part in parts if part]


def _generic(kind: str) -> tuple[str, list[str]]:
    """Return ``("Sequence", ["int"])`` for ``collections.abc.Sequence[int]``."""
    outer, bracket, rest = kind.partition("[")
    inner = _parts(rest.removesuffix("]"), ",") if bracket else []
    return outer.strip().rpartition(".")[2], inner


def _alternatives(kind: str) -> Iterator[str]:
    for part in _parts(kind, "|"):
        outer, inner = _generic(part)
        if outer == "Optional":
            yield from _alternatives(inner[0])
            yield "None"
        elif outer == "Union":
            for each in inner:
                yield from _alternatives(each)
        else:
            yield part


def _is_number(value: object) -> bool:
    return not isinstance(value, str | bytes) and (
        hasattr(value, "__float__") or hasattr(value, "__index__")
    )


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") or (
        hasattr(value, "__int__") and not isinstance(value, float | str | bytes)
    )


def _is_sequence(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict | set)


def _is_buffer(value: object) -> bool:
    try:
        memoryview(value).release()  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        return False
    return True


# By the last part of a type's name: a check of a value, and the name in messages.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "object": (lambda _: True, "an object"),
    "Any": (lambda _: True, "an object"),
    "handle": (lambda _: True, "an object"),
    "None": (lambda value: value is None, "None"),
    "bool": (lambda value: value is None or hasattr(value, "__bool__"), "True or False"),
    "int": (_is_whole, "an int"),
    "SupportsInt": (_is_whole, "an int"),
    "SupportsIndex": (_is_whole, "an int"),
    "float": (_is_number, "a number"),
    "SupportsFloat": (_is_number, "a number"),
    "str": (lambda value: isinstance(value, str | bytes), "a str"),
    "bytes": (lambda value: isinstance(value, bytes), "bytes"),
    "bytearray": (lambda value: isinstance(value, bytearray), "a bytearray"),
    "Buffer": (_is_buffer, "a buffer"),
    "Callable": (callable, "a function"),
    "Sequence": (_is_sequence, "a sequence"),
    "list": (_is_sequence, "a list"),
    "tuple": (_is_sequence, "a tuple"),
    "Mapping": (lambda value: hasattr(value, "keys"), "a dict"),
    "dict": (lambda value: hasattr(value, "keys"), "a dict"),
    "Set": (lambda value: isinstance(value, set | frozenset), "a set"),
    "timedelta": (lambda value: hasattr(value, "total_seconds"), "a datetime.timedelta"),
}


def _fits(value: object, kind: str) -> bool:
    return any(_is_one(value, each) for each in _alternatives(kind))


def _is_one(value: object, kind: str) -> bool:
    outer, inner = _generic(kind)
    if outer not in _KINDS:
        return any(base.__name__ == outer for base in type(value).__mro__)
    if not _KINDS[outer][0](value):
        return False
    if outer in ("Sequence", "list") and inner:
        return all(_fits(each, inner[0]) for each in value)  # type: ignore[attr-defined]
    if outer == "tuple" and inner and "..." not in inner:
        items = list(value)  # type: ignore[call-overload]
        return len(items) == len(inner) and all(map(_fits, items, inner))
    return True


def _in_words(kind: str) -> str:
    words = list(dict.fromkeys(_word(each) for each in _alternatives(kind)))
    if any(" of which " in each for each in words):
        words.sort(key=lambda word: word != "None")
    if "a datetime.timedelta" in words and "a number" in words:
        words[words.index("a number")] = "a number of seconds"
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _word(kind: str) -> str:
    outer, inner = _generic(kind)
    if outer not in _KINDS:
        return f"a pccl.{outer.lstrip('_')}" if kind.startswith("pccl.") else f"a {kind}"
    if outer in ("Sequence", "list") and inner:
        return f"{_KINDS[outer][1]} of which each is {_in_words(inner[0])}"
    if outer == "tuple" and inner:
        return f"a tuple of {', '.join(_in_words(each) for each in inner)}"
    return _KINDS[outer][1]
