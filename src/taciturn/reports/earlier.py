"""What was released before of the same records, and what the next release would give
away together with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from taciturn.errors import ParameterError
from taciturn.fits.parts import FitParts
from taciturn.release_log import ReleaseLog, Verdict
from taciturn.tables.spelling import legible

__all__ = ["Earlier", "earlier_releases", "earlier_texts"]

_MOST_RELEASES: Final = 30
_MOST_FINDINGS: Final = 20


@dataclass(frozen=True)
class Earlier:
    """Earlier releases, and the verdict on the next one.

    Attributes
    ----------
    releases : sequence of tuple of str, or None
        Number, name, date and protection of each, by number: what a log holds, which is
        public. None without a log.
    verdict : Verdict or None
        What the next release would give away: not for release.
    """

    releases: Sequence[tuple[str, str, str, str]] | None
    verdict: Verdict | None

    @property
    def found(self) -> int:
        """How many small counts could be worked out."""
        return 0 if self.verdict is None else self.verdict.found


def earlier_releases(log: Any, verdict: Any, parts: FitParts) -> Earlier | None:
    """What a log and a verdict say, if they are about the table of a fit; None without
    either.

    Raises
    ------
    ParameterError
        Something else, a log of other variables, a verdict on a table of other
        variables, from another log or from before the last release.
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
    rows = None
    if log is not None:
        book = log.codebook
        unknown = [x for x in parts.variables if x not in (*book.variables, *book.levels)]
        if unknown:
            raise ParameterError(f"log must be of the records of the fit: it has no {unknown[0]!r}")
        rows = [
            (str(number), str(row["name"]), f"{row['added']:%Y-%m-%d}", str(row["protection"]))
            for number, row in log.releases.iterrows()
        ]
    if log is not None and verdict is not None and verdict.log != log.id:
        raise ParameterError("verdict must be from this log, it is from another one")
    if verdict is not None:
        _check_verdict(verdict, rows, parts)
    return Earlier(rows, verdict)


def _check_verdict(
    verdict: Verdict, rows: Sequence[tuple[str, str, str, str]] | None, parts: FitParts
) -> None:
    known = {*map(str, parts.sample.coords), *parts.variables}
    others = {axis.name for table in verdict.tables for axis in table.axes} - known
    if others:
        raise ParameterError(
            "verdict must be on a release of the fit's table, it is on one by"
            f" {', '.join(sorted(map(repr, others)))}"
        )
    if rows is not None and [(str(n), x) for n, x in verdict.names.items()] != [
        r[:2] for r in rows
    ]:
        raise ParameterError(
            "verdict must be from this log as it is: something was released since, check again"
        )


def earlier_texts(earlier: Earlier, *, public: bool) -> dict[str, Any]:
    """What the template is given: for the public nothing that could be worked out."""
    verdict, rows = earlier.verdict, earlier.releases
    shown: dict[str, Any] = {
        "log": rows is not None,
        "releases": [
            (number, [legible(name), date, legible(protection) or "none is recorded"])
            for number, name, date, protection in (rows or [])[-_MOST_RELEASES:]
        ],
        "left_out": max(0, len(rows or []) - _MOST_RELEASES),
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
        " earlier releases were taken together in parts only, or there were too many totals: this"
        " is no proof."
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
