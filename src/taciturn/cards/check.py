"""Numbers of a fit, and their comparison with those of another."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from math import hypot
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from taciturn.cards.card import COLUMNS, Card, Run
from taciturn.cards.reading import load_card
from taciturn.diagnostics import (
    AnyDiagnostics,
    Diagnostics,
    ImportanceDiagnostics,
    PooledDiagnostics,
)
from taciturn.fits.diagnose import diagnose
from taciturn.fits.risk import assess
from taciturn.fits.table import draws_table, independent_draws
from taciturn.schema import RISK_MEASURES

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CardCheck",
    "check_numbers",
    "compare_numbers",
    "fit_in_numbers",
    "rounded",
    "validate_card",
]

MOST_ERRORS: Final = 4.0
"""How many combined Monte Carlo errors two means of one quantity may differ by."""

_COUNTS: Final = ("tau1",)  # measures that are whole numbers
_TINY: Final = 1e-9  # relative difference that rounding leaves between equal constants
_DIGITS: Final = 6
_MOST_OFF: Final = 2.0  # times what effective draws of other quantities would have
_KINDS: Final = {
    tuple(field.name for field in fields(kind)): kind
    for kind in (Diagnostics, ImportanceDiagnostics)
}

Rows = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class CardCheck:
    """Comparison of a new fit with a card; printing it gives the text.

    Attributes
    ----------
    card : Card
        The card.
    table : pandas.DataFrame
        One row per quantity: the means of ``reference`` and ``refit``, their
        ``difference``, its Monte Carlo ``error``, and their ratio, ``errors``.
    problems : tuple of str
        What does not agree, in words; empty if everything does.
    """

    card: Card
    table: "pd.DataFrame"
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether all fits converged and every mean agrees with the reference."""
        return not self.problems

    def __str__(self) -> str:
        rows = self.table.to_string(float_format=lambda value: f"{value:.4f}")
        verdict = (
            "agrees with its reference" if self.passed else f"FAILED: {'; '.join(self.problems)}"
        )
        return f"{self.card.path}: {self.card.estimator!r}\n{rows}\n{verdict}"


def validate_card(path: str | PathLike[str], *, progressbar: bool = False) -> CardCheck:
    """Repeat the fit that a card describes and compare it with its reference, and with
    what the card says of the fit.

    The table and the sample are compared with their hashes, and the fit has the
    recorded settings. A mean agrees if it lies within four combined Monte Carlo errors
    of the reference; by chance alone one in 16,000 does not. Medians and ends of
    intervals may be half the width of an interval apart, or one count; a Monte Carlo
    error is at most twice that of as many effective draws as the card records. The
    checks that the card records must be all those of its two fits, and such that both
    converged.

    Parameters
    ----------
    path : path
        A model card.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Returns
    -------
    CardCheck

    Raises
    ------
    FileFormatError
        Whatever `load_card` refuses; a table or sample other than the one that was
        fitted; a population of more or fewer people than the table from which the
        sample is drawn.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.cards.validate_card("models/area_by_religion-ChineseRestaurant.toml").passed
    True
    """
    card = load_card(path)
    sample = card.load_sample()
    fit = card.estimator.fit(sample, **card.fit_arguments(), progressbar=progressbar)
    rows, diagnostics = fit_in_numbers(assess(fit, weights=card.weights))
    table, problems = compare_numbers(card.reference.summary, rows)
    problems += [f"[fit.summary] {each}" for each in compare_numbers(card.fit.summary, rows)[1]]
    for name, run in (("reference", card.reference), ("fit", card.fit)):
        problems += [
            f"[{name}.checks] {each}" for each in _recorded_problems(run.checks, diagnostics)
        ]
        problems += [f"[{name}.summary] {each}" for each in _large_errors(run)]
    if diagnostics is not None:
        problems += [f"the new fit did not converge: {problem}" for problem in diagnostics.problems]
    return CardCheck(card, table, tuple(problems))


def fit_in_numbers(fit: xr.DataTree) -> tuple[dict[str, dict[str, float]], AnyDiagnostics | None]:
    """Summary of the risk measures and scalar parameters of an assessed fit, and its
    diagnostics.
    """
    risk = fit["risk"].to_dataset()
    diagnostics = diagnose(fit, risk)
    independent = independent_draws(diagnostics, risk.sizes["chain"] * risk.sizes["draw"])
    posterior = fit["posterior"].to_dataset() if "posterior" in fit.children else xr.Dataset()
    single = [
        name for name, draws in posterior.data_vars.items() if set(draws.dims) == {"chain", "draw"}
    ]
    measures = risk[list(RISK_MEASURES)].merge(posterior[single], join="override").drop_attrs()
    rows = draws_table(measures, 0.95, independent).to_dict("index")
    numbers = {
        str(name): {column: rounded(row[column]) for column in COLUMNS}
        for name, row in rows.items()
    }
    return numbers, diagnostics


def check_numbers(diagnostics: AnyDiagnostics | None) -> dict[str, float]:
    """Diagnostics as numbers by name, in a pool prefixed with the member's name."""
    if diagnostics is None:
        return {}
    if isinstance(diagnostics, PooledDiagnostics):
        own = {name: check_numbers(of) for name, of in diagnostics.members.items()}
        return {
            f"{name}_{check}": value
            for name, checks in own.items()
            for check, value in checks.items()
        }
    numbers = asdict(diagnostics)
    return {
        name: value if isinstance(value, int) else rounded(value) for name, value in numbers.items()
    }


def _recorded_problems(
    checks: Mapping[str, float], diagnostics: AnyDiagnostics | None
) -> Iterator[str]:
    """What is wrong with a fit by the checks that a card records of it, which must be
    of the same members as those of a new fit.
    """
    recorded, members = _by_member(checks), _by_member(check_numbers(diagnostics))
    for member in {**members, **recorded}:
        own = recorded.get(member, {})
        kind = next((kind for names, kind in _KINDS.items() if set(names) == set(own)), None)
        if kind is None or member not in members:
            rule = " or ".join(map(", ".join, _KINDS)) if member in members else "none"
            yield f"{member}must be {rule}, got {', '.join(own) or 'none'}"
        else:
            yield from (member + problem for problem in kind(**own).problems)


def _large_errors(run: Run) -> Iterator[str]:
    """Monte Carlo errors that are not those of so many effective draws: means are
    compared by them, and they may have been changed.
    """
    effective = [value for name, value in run.checks.items() if name.endswith(("ess", "ess_bulk"))]
    number = min([*effective, run.chains * run.draws])  # some count proposals
    for name, row in run.summary.items():
        most = _MOST_OFF * row["sd"] / max(number, 1) ** 0.5
        if row["mcse"] > most:
            yield (
                f"{name}: the Monte Carlo error must be at most {most:.6g}, as of {number:.6g}"
                f" effective draws: it is {row['mcse']:.6g}"
            )


def _by_member(checks: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Inverse of `check_numbers`, by what a problem of a member begins with."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in checks.items():
        check = next(each for names in _KINDS for each in names if f"_{name}".endswith(f"_{each}"))
        member = name.removesuffix(check).removesuffix("_")
        found.setdefault(member and f"{member}: ", {})[check] = value
    return found


def compare_numbers(reference: Rows, rows: Rows) -> tuple["pd.DataFrame", list[str]]:
    """Means side by side, and what differs by more than Monte Carlo errors explain."""
    import pandas as pd

    table, problems = {}, []
    for name, expected in reference.items():
        if name not in rows:
            problems.append(f"the fit has no {name}")
            continue
        difference = rows[name]["mean"] - expected["mean"]
        error = hypot(expected["mcse"], rows[name]["mcse"])
        errors = (
            0.0
            if abs(difference) <= _TINY * abs(expected["mean"])
            else abs(difference) / max(error, 5e-324)
        )
        table[name] = [expected["mean"], rows[name]["mean"], difference, error, errors]
        if not errors <= MOST_ERRORS:
            problems.append(
                f"{name}: the mean is {rows[name]['mean']:.6g}, the reference"
                f" {expected['mean']:.6g}, {errors:.1f} Monte Carlo errors apart; {MOST_ERRORS:g}"
                " are accepted"
            )
        problems += [f"{name}: {flaw}" for flaw in _flaws(name, expected, rows[name])]
    columns = ["reference", "refit", "difference", "error", "errors"]
    return pd.DataFrame.from_dict(table, orient="index", columns=columns), problems


def _flaws(name: str, expected: Mapping[str, float], row: Mapping[str, float]) -> Iterator[str]:
    """What else a card says of a quantity that cannot be of these draws, roughly."""
    apart = (row["97.5%"] - row["2.5%"]) / 2
    if name in _COUNTS:
        apart = max(apart, 1.0)
    most = dict.fromkeys(("2.5%", "50%", "97.5%"), apart)
    if name in RISK_MEASURES:  # those of a parameter need not exist
        most |= {"mean": apart, "sd": apart / 2}
    for column, own in most.items():
        if not abs(row[column] - expected[column]) <= own * (1 + _TINY) + _TINY:
            yield f"{column} is {row[column]:.6g}, the reference {expected[column]:.6g}"


def rounded(value: float) -> float:
    """A number to six significant digits, as in a card."""
    return float(f"{value:.{_DIGITS}g}")
