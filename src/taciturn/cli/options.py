"""What several commands share: exit statuses, names of estimators, kinds of options."""

import csv
import re
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, Final

import click

from taciturn.estimators.registry import COMMANDS
from taciturn.files import check_readable
from taciturn.validate import (
    MOST,
    MOST_SEED,
    check_encoding,
    check_separator,
    check_weights,
)

__all__ = [
    "EXIT_CONDITION",
    "EXIT_ERROR",
    "EXIT_NOT_CONVERGED",
    "MOST_COUNT",
    "SEED",
    "Decorator",
    "Model",
    "Names",
    "Number",
    "Numbers",
    "Whole",
    "check_model",
    "count_option",
    "csv_options",
    "draws_option",
    "is_card",
    "search_options",
    "seed_option",
    "total_option",
    "weights_option",
    "workers_option",
]

EXIT_ERROR: Final = 1
EXIT_NOT_CONVERGED: Final = 3
EXIT_CONDITION: Final = 4
MOST_COUNT: Final = 2**53  # as `schema.MAX_COUNT`, which is heavy to import
_MOST_DIGITS: Final = 40  # no number has more

type Decorator = Callable[[Callable[..., None]], Callable[..., None]]
"""What adds options to a command."""


class Number(click.FloatRange):
    """A finite number in a range; click's own class lets NaN pass."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read ``0.2``."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class Whole(click.IntRange):
    """A whole number in a range, which ends where a function of Python would refuse it,
    too.
    """

    def __init__(self, least: int, most: int = MOST) -> None:
        super().__init__(least, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read ``1000``."""
        if len(str(value)) > _MOST_DIGITS:
            self.fail(f"{str(value)[:_MOST_DIGITS]}... is not a whole number up to {self.max}.")
        return int(super().convert(value, param, ctx))


SEED: Final = Whole(0, MOST_SEED)


class Weights(click.ParamType[tuple[float, float, float]]):
    """Three numbers joined by commas."""

    name = "w1,w2,w3"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float, float]:
        """Read ``0.1,0.8,0.1``."""
        if isinstance(value, tuple):
            return value
        try:
            return check_weights([float(part) for part in re.split(r"\s*,\s*", str(value))])
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


class Numbers(click.ParamType[tuple[float, ...]]):
    """Numbers joined by commas."""

    name = "x,y,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Read ``1,0.5,0.2``."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} are not numbers joined by commas", param, ctx)


class Names(click.ParamType[tuple[str, ...]]):
    """Variables, or levels above them, joined by commas, in quotes where a name holds
    one; empty for the grand total.
    """

    name = "a,b,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Read ``country,sex`` or ``"age, in years",sex``."""
        if isinstance(value, tuple):
            return value
        try:
            names = next(csv.reader([str(value)], skipinitialspace=True, strict=True))
        except csv.Error:
            self.fail(f"{value!r} are not names joined by commas", param, ctx)
        return tuple(name.strip() for name in names) if str(value).strip() else ()


class Model(click.ParamType[str]):
    """The name of an estimator, or the file of a model card."""

    name = "model"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Refuse what is neither."""
        model = str(value)
        if model not in COMMANDS and not is_card(model):
            self.fail(
                f"{model!r} is neither a model card nor one of {', '.join(COMMANDS)}", param, ctx
            )
        return model


class Separator(click.ParamType[str]):
    """What separates the fields of a CSV file; ``tab`` is a tab."""

    name = "mark"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Read ``;``."""
        try:
            return check_separator("\t" if value in ("tab", "\\t") else value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Encoding(click.ParamType[str]):
    """An encoding that Python knows."""

    name = "name"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Read ``latin-1``."""
        try:
            return check_encoding(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def count_option(where: str) -> Decorator:
    """Return the option of the column of counts in what a command reads."""
    return click.option(
        "--count", default="count", show_default=True, help=f"Column of counts in {where}."
    )


def draws_option(each: str) -> Decorator:
    """Return the option of how many draws there are of each of something."""
    return click.option(
        "--draws", type=Whole(1), default=1000, show_default=True, help=f"Draws per {each}."
    )


weights_option: Final = click.option(
    "--weights",
    type=Weights(),
    default="0.1,0.8,0.1",
    show_default=True,
    help="Weights of the three terms of R1 and R2.",
)

seed_option: Final = click.option("--seed", type=SEED, help="The same seed gives the same numbers.")

workers_option: Final = click.option(
    "--workers", type=Whole(1), help="Processes; all cores by default."
)


def csv_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add how the CSV files that a command reads are written."""
    encoding = click.option(
        "--encoding",
        type=Encoding(),
        help="Encoding of CSV files, such as latin-1 or cp1252; UTF-8 by default.",
    )
    sep = click.option(
        "--sep",
        type=Separator(),
        help="What separates the fields of CSV files, such as ';' or tab; found by default.",
    )
    return sep(encoding(command))


total_option: Final = click.option(
    "--total", default="Total", show_default=True, help="Label of totals in the output."
)


def search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add how a command searches for a suppression pattern."""
    seed = click.option(
        "--seed",
        type=SEED,
        default=0,
        show_default=True,
        help="The same seed gives the same pattern.",
    )
    time_limit = click.option(
        "--time-limit",
        type=Number(0, min_open=True),
        default=60.0,
        show_default=True,
        help="Seconds to search for a pattern.",
    )
    return time_limit(seed(command))


def is_card(model: str) -> bool:
    """Whether the value of ``--model`` is a file rather than a name."""
    return model not in COMMANDS and (model.lower().endswith(".toml") or Path(model).is_file())


def check_model(model: str | None, formula: str | None) -> None:
    """Raise if there is no such card, or if the model does not take the formula."""
    if model is None:
        return
    if is_card(model):
        check_readable(Path(model))
        if formula is not None:
            raise click.UsageError("--formula does not apply to a model card, which has its own")
    elif formula is not None and not COMMANDS[model].takes_formula:
        raise click.UsageError(f"--formula does not apply to --model {model}")
