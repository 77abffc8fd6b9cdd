"""A mechanism on the command line: a name with a number, or a file."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.errors import FileFormatError, ParameterError
from taciturn.files import check_readable

if TYPE_CHECKING:
    from taciturn.release_log.mechanisms import Stored

__all__ = ["Specified"]

_SHORT: Final = re.compile(r"([a-z-]+):([a-z]+)=([0-9]{1,17}|[0-9]{0,17}\.[0-9]{1,17})")
_MOST_BYTES: Final = 5_000_000


class Specified(click.ParamType["Stored"]):
    """``name:parameter=number``, or a JSON file with the name and the parameters."""

    name = "name:parameter=number|file.json"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Stored":
        """Read ``random-rounding:base=3``."""
        from taciturn.attack import Mechanism
        from taciturn.release_log import RecordSwapping

        if isinstance(value, Mechanism | RecordSwapping):
            return value
        text = str(value)
        short = _SHORT.fullmatch(text)
        if short is None and not text.endswith(".json"):
            self.fail(
                f"{text!r} is neither name:parameter=number, such as random-rounding:base=3, nor a"
                " file *.json",
                param,
                ctx,
            )
        from taciturn.release_log.mechanisms import mechanism_of

        if short is None:
            return mechanism_of(_read(Path(text)))
        name, parameter, number = short.groups()
        try:
            return mechanism_of(
                {"name": name, parameter: int(number) if number.isdigit() else float(number)}
            )
        except ParameterError as error:
            self.fail(str(error), param, ctx)


def _read(path: Path) -> Any:
    """What a JSON file holds, in which no name is given twice.

    Raises
    ------
    FileFormatError
        It cannot be read, is long, or is no JSON.
    """
    check_readable(path)
    content = path.read_bytes()
    if len(content) > _MOST_BYTES:
        raise FileFormatError(f"{path}: has more than {_MOST_BYTES:,} bytes")
    try:
        return json.loads(content, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: is no JSON: {error!s:.200}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice in an object")
    return found
