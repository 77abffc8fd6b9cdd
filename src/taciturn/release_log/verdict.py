"""The answer to a check: whether a table can go out, and if not, why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
import pandas as pd

from taciturn.release_log.advice import Advice
from taciturn.release_log.findings import Finding
from taciturn.release_log.likely import Likely
from taciturn.release_log.published import PublishedTable

__all__ = ["Verdict"]

_SHOWN: Final = 10  # findings that are printed
_NAMED: Final = 5  # releases of each that perturbed counts make nearly certain


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """Whether a table can be released after all that was released before it.

    Attributes
    ----------
    findings : sequence of Finding
        Small counts that could be worked out with the table, and not, or with more
        values left, without it.
    likely : sequence of Likely
        Small counts that perturbed counts would make nearly certain with the table, and
        not, or with more values, without it: a probability under a stated prior, no
        proof.
    further : int
        Those that are part of one of these with the same bounds, or likely values.
    advice : sequence of Advice
        Changes after which nothing is found; each was checked as the table was.
    threshold, values : int
        Counts from 1 to below `threshold` are small, and must be able to have at least
        so many values.
    certainty : float
        The probability from which on fewer values than that are nearly certain.
    complete : bool
        Whether all earlier releases were taken together at once. If not, they were in
        parts, and what follows only from several of these parts together was not looked
        for; or there were too many totals to bound all, or answers with the same keys
        from which more may follow.
    not_combined : tuple of str
        The names of earlier releases that share variables with the table and were in
        none of the parts.
    names : mapping of int to str
        The name of each earlier release.
    log : str
        The `ReleaseLog.id` of the log that was asked.
    """

    findings: Sequence[Finding]
    likely: Sequence[Likely]
    further: int
    advice: Sequence[Advice]
    threshold: int
    values: int
    certainty: float
    complete: bool
    not_combined: tuple[str, ...]
    names: Mapping[int, str]
    log: str
    tables: Sequence[PublishedTable] = ()
    """What was checked."""
    advised: bool = True
    """Whether changes were looked for."""

    @property
    def found(self) -> int:
        """How many small counts were found, certain and nearly certain."""
        return len(self.findings) + len(self.likely) + self.further

    @property
    def passed(self) -> bool:
        """Whether nothing was found, and all was looked at."""
        return not self.found and self.complete

    @property
    def cells(self) -> pd.DataFrame:
        """A row for each finding: ``cell``, ``lower`` and ``upper``, ``lower_before``
        and ``upper_before`` (missing where there was none), ``n_values``, ``risk`` (1
        over the entropy of equally likely values, in 1/bits; missing where only one is
        left), ``disclosed``, ``releases`` (names, joined by semicolons) and
        ``smallest``.
        """
        rows = []
        for each in self.findings:
            number = each.upper - each.lower + 1
            first, last = each.before
            rows.append(
                {
                    "cell": each.who,
                    "lower": each.lower,
                    "upper": each.upper,
                    "lower_before": first,
                    "upper_before": np.nan if last is None else last,
                    "n_values": number,
                    "risk": 1 / np.log2(number) if number > 1 else np.nan,
                    "disclosed": number == 1,
                    "releases": "; ".join(self.names[release] for release in each.releases),
                    "smallest": each.smallest,
                }
            )
        columns = [
            *("cell", "lower", "upper", "lower_before", "upper_before", "n_values", "risk"),
            *("disclosed", "releases", "smallest"),
        ]
        return pd.DataFrame(rows, columns=columns)

    @property
    def probable(self) -> pd.DataFrame:
        """A row for each of `likely`: ``cell``, ``values`` (joined by ``or``),
        ``probability`` and ``probability_before`` of these values, ``risk`` (1 over the
        entropy of the posterior, in 1/bits; missing where nothing is left), ``lower``
        and ``upper`` (missing where there is none), and ``releases`` (names, joined by
        semicolons).
        """
        columns = [
            *("cell", "values", "probability", "probability_before", "risk", "lower", "upper"),
            "releases",
        ]
        rows = [
            (
                each.who,
                " or ".join(map(str, each.likely)),
                each.probability,
                each.before,
                1 / each.entropy if each.entropy > 0 else np.nan,
                each.lower,
                np.nan if each.upper is None else each.upper,
                "; ".join(self.names[release] for release in each.releases),
            )
            for each in self.likely
        ]
        return pd.DataFrame(rows, columns=columns)

    def lines(self) -> list[str]:
        """The answer in words."""
        lines = [self._head()]
        shown = [*map(self._line, self.findings), *map(self._probable_line, self.likely)]
        lines += [f"  {line}" for line in shown[:_SHOWN]]
        rest = len(shown) - _SHOWN
        if rest > 0:
            lines.append(f"  and {rest:,} more")
        if self.further:
            lines.append(f"  and {self.further:,} that are part of these")
        lines += [f"To release it: {each}." for each in self.advice]
        if self.found and self.advised and not self.advice:
            lines.append("No suppression, merging or rounding that was tried is enough.")
        if self.not_combined:
            names = "; ".join(self.not_combined[:_SHOWN])
            more = len(self.not_combined) - _SHOWN
            lines.append(
                f"Not taken together with it: {names}{f' and {more:,} more' if more > 0 else ''}."
            )
        return lines

    def _head(self) -> str:
        if self.passed:
            return "Nothing found: no small count can be worked out that could not be before."
        if not self.found:
            return (
                "Nothing found, but the earlier releases were taken together in parts only, or"
                " there were too many totals or answers with the same keys: this is no proof."
            )
        counts = "1 small count" if self.found == 1 else f"{self.found:,} small counts"
        nearly = ""
        if self.likely:
            nearly = ", with certainty or nearly" if self.findings else ", nearly with certainty"
        return f"Do not release: {counts} could be worked out{nearly}."

    def _probable_line(self, found: Likely) -> str:
        values = " or ".join(map(str, found.likely))
        names = "; ".join(self.names[release] for release in found.releases[:_NAMED])
        more = len(found.releases) - _NAMED
        names += f" and {more:,} more" if more > 0 else ""
        return (
            f"{found.who}: {values} with probability {found.probability:.3f}"
            f" ({found.before:.3f} before), {f'with {names}' if names else 'by itself'}"
        )

    def _line(self, found: Finding) -> str:
        value = (
            f"{found.lower}" if found.lower == found.upper else f"{found.lower} to {found.upper}"
        )
        first, last = found.before
        before = f"{first} or more" if last is None else f"{first} to {last}"
        if not found.releases:
            how = "by itself"
        else:
            how = f"with {'; '.join(self.names[release] for release in found.releases)}"
        return f"{found.who}: {value} ({before} before), {how}"

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return f"<p>{'<br>'.join(map(escape, self.lines()))}</p>"
