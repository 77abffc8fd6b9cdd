"""What was released before of the same records, and what the next release would give
away together with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.fits.parts import FitParts
from taciturn.release_log import ReleaseLog, Verdict
from taciturn.release_log.codebook import Codebook, label_text
from taciturn.release_log.published import PublishedTable
from taciturn.tables.labels import labels_of
from taciturn.tables.spelling import legible

__all__ = ["Earlier", "earlier_releases", "earlier_texts"]

_MOST_RELEASES: Final = 30
_MOST_FINDINGS: Final = 20


@dataclass(frozen=True)
class Earlier:
    """Earlier releases, and the verdict on the next one.

    Attributes
    ----------
    releases : sequence of tuple of str
        Number, name, date and protection of each, by number: what a log holds, which is
        public.
    verdict : Verdict or None
        What the next release would give away: not for release.
    """

    releases: Sequence[tuple[str, str, str, str]]
    verdict: Verdict | None

    @property
    def found(self) -> int:
        """How many small counts could be worked out."""
        return 0 if self.verdict is None else self.verdict.found

    @property
    def gives_size(self) -> bool:
        """Whether the release of the verdict says how many people there are."""
        tables = [] if self.verdict is None else self.verdict.tables
        return any(table.counts_everybody for table in tables)


def earlier_releases(log: Any, verdict: Any, parts: FitParts) -> Earlier | None:
    """What a log and a verdict say, if they are about the table of a fit; None without
    either.

    Raises
    ------
    ParameterError
        Something else, a log of other variables; a verdict without its log, on a table
        of other variables or with other counts, from another log or from before the
        last release.
    FileFormatError
        The log cannot be read.
    """
    if log is None and verdict is None:
        return None
    if log is not None and not isinstance(log, ReleaseLog):
        raise ParameterError(f"log must be a ReleaseLog, got {type(log).__name__}")
    if verdict is not None and not isinstance(verdict, Verdict):
        raise ParameterError(
            f"verdict must be what ReleaseLog.check returned, got {type(verdict).__name__}"
        )
    if log is None:
        raise ParameterError(
            "verdict needs log, the one that was asked: it shows whether something was released"
            " since"
        )
    book = log.codebook
    unknown = [x for x in parts.variables if x not in (*book.variables, *book.levels)]
    if unknown:
        raise ParameterError(f"log must be of the records of the fit: it has no {unknown[0]!r}")
    rows = [
        (str(number), str(row["name"]), f"{row['added']:%Y-%m-%d}", str(row["protection"]))
        for number, row in log.releases.iterrows()
    ]
    if verdict is not None:
        if verdict.log != log.id:
            raise ParameterError("verdict must be from this log, it is from another one")
        _check_verdict(verdict, rows, parts)
        _check_counts(verdict, book, parts.sample)
    return Earlier(rows, verdict)


def _check_verdict(
    verdict: Verdict, rows: Sequence[tuple[str, str, str, str]], parts: FitParts
) -> None:
    known = {*map(str, parts.sample.coords), *parts.variables}
    axes = [axis for table in verdict.tables for axis in table.axes]
    others = {axis.name for axis in axes if not known & {axis.name, axis.variable}}
    if others:
        raise ParameterError(
            "verdict must be on a release of the fit's table, it is on one by"
            f" {', '.join(sorted(map(repr, others)))}"
        )
    if [(str(n), x) for n, x in verdict.names.items()] != [r[:2] for r in rows]:
        raise ParameterError(
            "verdict must be from this log as it is: the log has changed since, check again"
        )


def _check_counts(verdict: Verdict, book: Codebook, sample: xr.DataArray) -> None:
    """Raise where a count that was checked cannot be one of this sample, as far as it
    was not perturbed and can be found there.
    """
    for table in verdict.tables:
        place = None if table.noise is not None else _places(table, book, sample)
        if place is None:
            continue
        cells = np.zeros(table.least.size, dtype=np.int64)
        np.add.at(cells, place[place >= 0], sample.values[place >= 0])
        counts = cells.reshape(table.least.shape)
        wrong = counts < table.least
        if {*table.where} <= {*map(str, sample.dims)}:  # otherwise a part of these people
            wrong |= counts > table.most
        if wrong.any():
            cell = int(np.flatnonzero(wrong)[0])
            ends = int(table.least.flat[cell]), int(table.most.flat[cell])
            raise ParameterError(
                f"verdict must be on a release of the fit's table: it is on one with"
                f" {_between(*ends)} people in {table.label(cell) or 'all'}, and the sample has"
                f" {int(counts.flat[cell]):,}"
            )


def _places(
    table: PublishedTable, book: Codebook, sample: xr.DataArray
) -> npt.NDArray[np.int64] | None:
    """For each cell of a sample the flat position in a published table, -1 for those
    that it does not count; None where the sample has not its variables or categories.
    """
    place = np.zeros(sample.shape, dtype=np.int64)
    counted = np.ones(sample.shape, dtype=np.bool_)
    for axis in table.axes:
        places = dict(zip(book.variables[axis.variable], axis.classes.tolist(), strict=True))
        found = _codes(sample, axis.variable, places)
        places = {label: at for at, label in enumerate(axis.labels)}  # merged, or of a level
        for dim in (axis.variable, axis.name):
            found = _codes(sample, dim, places) if found is None else found
        if found is None:
            return None
        place = place * len(axis.labels) + found
        counted &= found >= 0
    for name, mask in table.where.items():
        if name in sample.dims:
            inside = dict(zip(book.variables[name], mask.tolist(), strict=True))
            if (found := _codes(sample, name, inside)) is None:
                return None
            counted &= found > 0
    return np.where(counted, place, -1)


def _codes(
    sample: xr.DataArray, dim: str, codes: Mapping[str, int]
) -> npt.NDArray[np.int64] | None:
    """The code of each category of a variable, to be broadcast; None where the sample
    has it not, or a category without one.
    """
    if dim not in sample.dims:
        return None
    labels = list(map(label_text, labels_of(sample[dim])))
    if not {*labels} <= {*codes}:
        return None
    shape = [-1 if each == dim else 1 for each in sample.dims]
    return np.array([codes[label] for label in labels], dtype=np.int64).reshape(shape)


def earlier_texts(earlier: Earlier, *, public: bool) -> dict[str, Any]:
    """What the template is given: for the public nothing that could be worked out."""
    verdict, rows = earlier.verdict, earlier.releases
    shown: dict[str, Any] = {
        "releases": [
            (number, [legible(name), date, legible(protection) or "none is recorded"])
            for number, name, date, protection in rows[-_MOST_RELEASES:]
        ],
        "left_out": max(0, len(rows) - _MOST_RELEASES),
        "verdict": None,
    }
    if verdict is None:
        return shown
    findings = [] if public else [_finding(each, verdict) for each in verdict.findings]
    likely = [] if public else [_likely(each, verdict) for each in verdict.likely]
    left_out = max(0, len(findings) - _MOST_FINDINGS) + max(0, len(likely) - _MOST_FINDINGS)
    return shown | {
        "verdict": _said(verdict),
        "bad": not verdict.passed,
        "threshold": verdict.threshold,
        "n_values": verdict.values,
        "findings": findings[:_MOST_FINDINGS],
        "likely": likely[:_MOST_FINDINGS],
        "certainty": f"{verdict.certainty:g}",
        "more": 0 if public else left_out + verdict.further,
        "advice": [] if public else [legible(str(each)) for each in verdict.advice],
        "not_combined": [legible(name) for name in verdict.not_combined],
    }


def _said(verdict: Verdict) -> str:
    """The verdict in a sentence."""
    if verdict.found:
        counts = "A small count" if verdict.found == 1 else f"{verdict.found:,} small counts"
        nearly = ""
        if verdict.likely:
            nearly = ", with certainty or nearly," if verdict.findings else " nearly with certainty"
        return (
            f"{counts} could be worked out{nearly} that could not be before: do not release it as"
            " it is."
        )
    if verdict.complete:
        return "No small count can be worked out that could not be before."
    return (
        "No small count was found that could be worked out and could not be before, but the"
        " earlier releases were taken together in parts only, or there were too many totals or"
        " answers with the same keys: this is no proof."
    )


def _finding(found: Any, verdict: Verdict) -> tuple[str, list[str]]:
    """Whom it counts; its bounds before and with the release; what is needed for it."""
    first, last = found.before
    names = "; ".join(legible(verdict.names[release]) for release in found.releases)
    return (
        legible(found.who),
        [
            f"{first:,} or more" if last is None else _between(first, last),
            _between(found.lower, found.upper),
            f"with {names}" if names else "by itself",
        ],
    )


def _likely(found: Any, verdict: Verdict) -> tuple[str, list[str]]:
    """Whom it counts; its most probable values, their probability before and with the
    release; whose perturbed counts say so.
    """
    names = "; ".join(legible(verdict.names[release]) for release in found.releases)
    return (
        legible(found.who),
        [
            " or ".join(f"{value:,}" for value in found.likely),
            f"{found.before:.3f}",
            f"{found.probability:.3f}",
            f"with {names}" if names else "by itself",
        ],
    )


def _between(lower: int, upper: int) -> str:
    return f"{lower:,}" if lower == upper else f"{lower:,} to {upper:,}"
