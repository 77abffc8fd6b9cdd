"""The answer to a check: whether a table can go out, and if not, why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

import numpy as np
import pandas as pd

from taciturn.release_log.advice import Advice
from taciturn.release_log.checking import Finding
from taciturn.release_log.published import PublishedTable

__all__ = ["Verdict"]

_SHOWN: Final = 10  # findings that are printed


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """Whether a table can be released after all that was released before it.

    Attributes
    ----------
    findings : sequence of Finding
        Small counts that could be worked out with the table, and not without it.
    further : int
        Those that are part of one of these with the same bounds.
    advice : sequence of Advice
        Changes after which nothing is found; each was checked as the table was.
    threshold, values : int
        Counts from 1 to below `threshold` are small, and must be able to have at least
        so many values.
    complete : bool
        Whether all earlier releases were taken together at once. If not, they were in
        parts, and what follows only from several of these parts together was not looked
        for; or there were too many totals to bound all.
    not_combined : tuple of str
        The names of earlier releases that share variables with the table and were in
        none of the parts.
    names : mapping of int to str
        The name of each earlier release.
    log : str
        The `ReleaseLog.id` of the log that was asked.
    """

    findings: Sequence[Finding]
    further: int
    advice: Sequence[Advice]
    threshold: int
    values: int
    complete: bool
    not_combined: tuple[str, ...]
    names: Mapping[int, str]
    log: str
    last: int = field(default=0)
    """The number of the last release that was in the log."""
    tables: Sequence[PublishedTable] = ()
    """What was checked."""
    advised: bool = True
    """Whether changes were looked for."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found, and all was looked at."""
        return not self.findings and not self.further and self.complete

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

    def lines(self) -> list[str]:
        """The answer in words."""
        if self.passed:
            head = "Nothing found: no small count can be worked out that could not be before."
        elif not self.findings and not self.further:
            head = (
                "Nothing found, but the earlier releases were taken together in parts only, or"
                " there were too many totals: this is no proof."
            )
        else:
            number = len(self.findings) + self.further
            counts = "1 small count" if number == 1 else f"{number:,} small counts"
            head = f"Do not release: {counts} could be worked out."
        lines = [head]
        for each in self.findings[:_SHOWN]:
            lines.append(f"  {self._line(each)}")
        rest = len(self.findings) - _SHOWN
        if rest > 0:
            lines.append(f"  and {rest:,} more")
        if self.further:
            lines.append(f"  and {self.further:,} that are part of these")
        lines += [f"To release it: {each}." for each in self.advice]
        if self.findings and self.advised and not self.advice:
            lines.append("No suppression, merging or rounding that was tried is enough.")
        if self.not_combined:
            shown = "; ".join(self.not_combined[:_SHOWN])
            more = len(self.not_combined) - _SHOWN
            lines.append(
                f"Not taken together with it: {shown}{f' and {more:,} more' if more > 0 else ''}."
            )
        return lines

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
