"""``--fail-on``: conditions under which a command ends with a status of its own."""

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from taciturn.cli.options import EXIT_CONDITION

if TYPE_CHECKING:
    import xarray as xr

    import taciturn as tc

__all__ = ["CHECKS", "DISCLOSED", "Condition", "exit_if", "fail_on_option", "found_in_fit"]

CHECKS: Final = "checks"
DISCLOSED: Final = "disclosed"

_BELOW_1: Final = r"0(?:\.[0-9]*)?|\.[0-9]+"
_RISK: Final = re.compile(rf"(R1|R2) *> *({_BELOW_1}|1(?:\.0*)?) *: *({_BELOW_1})")
_HELP: Final = {
    "risk": "R2>0.2:0.05, which is P(R2 > 0.2) > 0.05, or the same of R1",
    CHECKS: "checks, where diagnostics or predictive checks failed",
    DISCLOSED: "disclosed, where a cell that is not published can be worked out",
}


@dataclass(frozen=True)
class Condition:
    """A word, or a measure that is above a value with more than a probability."""

    text: str
    measure: str = ""
    value: float = 0.0
    probability: float = 0.0


class Conditions(click.ParamType[Condition]):
    """One of the conditions that a command knows."""

    name = "condition"

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Condition:
        """Read ``R2>0.2:0.05``."""
        if isinstance(value, Condition):
            return value
        text = str(value).strip()
        if text in self.known and text != "risk":
            return Condition(text)
        found = _RISK.fullmatch(text) if "risk" in self.known else None
        if found is None:
            self.fail(f"{value!r:.60} is none of: {_listed(self.known)}", param, ctx)
        return Condition(text, found[1], float(found[2]), float(found[3]))


def fail_on_option(*known: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``--fail-on`` with conditions that a command knows: ``risk``, `CHECKS` or
    `DISCLOSED`.
    """
    return click.option(
        "--fail-on",
        type=Conditions(known),
        multiple=True,
        help=f"End with status {EXIT_CONDITION} on {_listed(known)}; repeatable.",
    )


def found_in_fit(
    conditions: Iterable[Condition], fit: "xr.DataTree", found: "tc.fits.Summary"
) -> list[str]:
    """In words, the conditions that hold for an assessed fit and its summary."""
    words = []
    for condition in conditions:
        if condition.measure:
            above = float((fit["risk"][condition.measure] > condition.value).mean())
            if above > condition.probability:
                words.append(f"P({condition.measure} > {condition.value:g}) = {above:.4g}")
        elif found.problems:
            words.append("; and ".join(found.problems))
    return words


def exit_if(words: Iterable[str]) -> None:
    """Say which conditions hold, and end with a status of its own where any does."""
    held = list(words)
    for each in held:
        click.echo(f"taciturn: --fail-on: {each}", err=True)
    if held:
        sys.exit(EXIT_CONDITION)


def _listed(known: Iterable[str]) -> str:
    return "; ".join(_HELP[each] for each in known)
