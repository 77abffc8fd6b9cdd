"""``taciturn diagnose``: whether a saved fit can be relied on."""

import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.files import FileCommand, Input
from taciturn.cli.options import EXIT_NOT_CONVERGED
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.figures import beside
from taciturn.files import check_readable

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    import taciturn as tc
    from taciturn.diagnostics import AnyDiagnostics

__all__ = ["diagnose"]

Row = dict[str, Any]
_DECIDING: Final = ("diagnostics", "model")
_SHOWN: Final = ("value", "least", "most")


@click.command(cls=FileCommand)
@click.argument("fit", type=Input(), metavar="FIT.nc")
@format_option
def diagnose(fit: Path, form: Format) -> None:
    """Check whether a saved fit can be relied on.

    FIT.nc is a file that assess --save or compare --save wrote. Diagnostics of the
    sampler and checks of the model decide. What else is noted beside them does not: the
    checks of each member of a pool, how far prior and likelihood move the results, and
    how well each individual is predicted from the others.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 not to be relied on.
    """
    check_readable(fit)
    import pandas as pd

    import taciturn as tc
    from taciturn.fits.cautions import cautions_of
    from taciturn.fits.parts import known_parts
    from taciturn.fits.problems import problems_of
    from taciturn.fits.recorded import recorded_estimator

    read = tc.read_fit(fit)
    found = tc.summary(read)
    problems = problems_of(found.diagnostics, found.checks, found.draws)
    rows = pd.DataFrame(
        [
            *_of_diagnostics(found.diagnostics),
            *_of_checks(found.checks),
            *_of_sensitivity(found.sensitivity),
            *_left_out(read),
        ],
        columns=["check", "of", "quantity", "value", "least", "most", "passed", "decides"],
    )
    known = found.diagnostics is not None or recorded_estimator(read) is not None
    cautions = cautions_of(read, known_parts(read), quoting=True)
    print_as(
        form,
        text="\n".join([_verdict(problems, rows), "", _aligned(rows), *_notes(found, cautions)]),
        facts={
            "reliable": False if problems else True if known else None,
            "problems": list(problems),
            "facts": found.facts,
            "findings": found.findings,
            "cautions": list(cautions),
            "checks": rows.to_dict("records"),
        },
        table=rows,
    )
    if problems:
        click.echo("taciturn: the fit is not to be relied on", err=True)
        sys.exit(EXIT_NOT_CONVERGED)


def _verdict(problems: Sequence[str], rows: "pd.DataFrame") -> str:
    if problems:
        return f"Do not rely on this fit: {'; and '.join(problems)}."
    if rows.empty:
        return "Nothing could be checked."
    said = "No check failed. That is no proof: checks see the sample, not what lies behind it."
    missed = rows[(rows["check"] == "model") & (rows["of"] != "") & ~rows["passed"].astype(bool)]
    members = [
        f" Its member {name} misses the sample's {', '.join(own)}, which does not decide."
        for name, own in missed.groupby("of", sort=False)["quantity"]
    ]
    return said + "".join(members)


def _row(
    check: str, of: str, quantity: str, value: float, least: float | None, most: float | None
) -> Row:
    """One number with the range in which it passes."""
    passed = (least is None or value >= least) and (most is None or value <= most)
    return {
        "check": check,
        "of": of,
        "quantity": quantity,
        "value": value,
        "least": least,
        "most": most,
        "passed": passed,
        "decides": check in _DECIDING,
    }


def _of_diagnostics(found: "AnyDiagnostics | None", of: str = "") -> list[Row]:
    """Each number of the sampler, in a mixture those of each member."""
    from taciturn.diagnostics import (
        HIGHEST_K_HAT,
        HIGHEST_R_HAT,
        SMALLEST_ESS,
        ImportanceDiagnostics,
        PooledDiagnostics,
    )

    name = "diagnostics"
    if found is None:
        return []
    if isinstance(found, PooledDiagnostics):
        return [
            row
            for member, own in found.members.items()
            for row in _of_diagnostics(own, f"{of}/{member}" if of else member)
        ]
    if isinstance(found, ImportanceDiagnostics):
        return [
            _row(name, of, "k-hat", found.k_hat, None, HIGHEST_K_HAT),
            _row(name, of, "effective draws", found.ess, SMALLEST_ESS, None),
        ]
    return [
        _row(name, of, "r-hat", found.r_hat, None, HIGHEST_R_HAT),
        _row(name, of, "effective draws, bulk", found.ess_bulk, SMALLEST_ESS, None),
        _row(name, of, "effective draws, tail", found.ess_tail, SMALLEST_ESS, None),
        _row(name, of, "divergences", found.divergences, None, 0),
    ]


def _of_checks(checks: "xr.Dataset | None") -> list[Row]:
    """The sample beside the interval of replicated samples, of the whole fit and of
    each member; members do not decide, nor does a rough comparison, which has none.
    """
    from taciturn.fits.checks import is_rough, of_whole_fit

    if checks is None:
        return []
    if is_rough(checks):
        return [row | {"decides": False} for row in _compared("", of_whole_fit(checks))]
    members = checks["member"].values[1:] if "member" in checks.dims else ()
    return _compared("", of_whole_fit(checks)) + [
        row | {"decides": False}
        for name in members
        for row in _compared(str(name), checks.sel(member=name, drop=True))
    ]


def _compared(of: str, checks: "xr.Dataset") -> list[Row]:
    """A row for each statistic."""
    each = checks.to_dataframe().to_dict("index")
    return [
        _row("model", of, str(name), row["observed"], row["lower"], row["upper"])
        for name, row in each.items()
    ]


def _of_sensitivity(table: "pd.DataFrame | None") -> list[Row]:
    """How far the prior moves each quantity."""
    from taciturn.fits.sensitivity import SENSITIVE

    if table is None:
        return []
    rows = table.reset_index().to_dict("records")
    return [
        _row("prior", str(r.get("member", "")), str(r["quantity"]), r["prior"], None, SENSITIVE)
        for r in rows
    ]


def _left_out(fit: "xr.DataTree") -> list[Row]:
    """The highest k-hat of individuals left out, and how many are too high; none where
    the terms are exact, or where the fit does not have them.
    """
    from taciturn.errors import TaciturnError
    from taciturn.fits.leave_one_out import leave_one_out

    try:
        result = leave_one_out(fit, "the fit")
    except TaciturnError:
        return []
    if result.pareto_k is None:
        return []
    too_high = int((result.pareto_k > result.good_k).sum())
    highest = float(result.pareto_k.max())
    return [
        _row("leave-one-out", "", "highest k-hat", highest, None, float(result.good_k)),
        _row("leave-one-out", "", "individuals above it", too_high, None, 0),
    ]


def _aligned(rows: "pd.DataFrame") -> str:
    """The rows for a terminal."""
    if rows.empty:
        return "no diagnostics or checks"
    figures = [_figures(row) for row in rows.to_dict("records")]
    shown = rows.drop(columns="decides").assign(
        passed=[
            "yes" if passed else "NO" if decides else "note"
            for passed, decides in zip(rows["passed"], rows["decides"], strict=True)
        ],
        **{name: [figure.get(name, "") for figure in figures] for name in _SHOWN},
    )
    kept = shown if rows["of"].any() else shown.drop(columns="of")
    return str(kept.to_string(index=False))


def _figures(row: Mapping[Any, Any]) -> dict[str, str]:
    """What is known of a value and its range, as shown; a value outside is seen to be,
    also beside ends that are rounded.
    """
    known = {name: x for name, x in row.items() if name in _SHOWN and x is not None and x == x}
    value = known.pop("value", None)
    outside = value is not None and not row["passed"]
    shown = {name: _digits(end, *([value] if outside else [])) for name, end in known.items()}
    if value is not None:
        shown["value"] = _digits(value, *(map(float, shown.values()) if outside else ()))
    return shown


def _digits(value: float, *limits: float) -> str:
    """A number with four digits, or as many more as keep it on its side of limits."""
    decimals = max(3 - Decimal(value).adjusted(), 0)
    return repr(float(beside(value, *limits, decimals=decimals))).removesuffix(".0")


def _notes(found: "tc.fits.Summary", cautions: tuple[str, ...]) -> list[str]:
    """What no number stands for."""
    notes = []
    if found.diagnostics is None:
        notes.append(f"Diagnostics: {found.findings['Diagnostics']}.")
    if found.checks is None:
        notes.append("Model: the fit holds no samples of the fitted model.")
    if found.sensitivity is None:
        notes.append(f"Prior: {found.findings['Prior']}.")
    notes += cautions
    return [*([""] if notes else []), *notes]
