"""What a check finds, and how far it looked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taciturn.release_log.likely import Likely
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.window import Source

__all__ = ["Checked", "Finding"]


@dataclass(frozen=True)
class Finding:
    """A small count that can be worked out once the table is published.

    Attributes
    ----------
    who : str
        Whom it counts, in words.
    taken : mapping of str to tuple of str
        The categories that it takes of each variable which it does not sum over.
    lower, upper : int
        Its bounds with the table.
    before : tuple of (int, int or None)
        Its bounds before; None above where there was none.
    releases : tuple of int
        The earlier releases from which, with the table, these bounds follow; empty
        where the table gives it away by itself.
    smallest : bool
        Whether it is proved that no smaller set of releases is enough, where what
        several say alike counts as said by the first.
    """

    who: str
    taken: Mapping[str, tuple[str, ...]]
    lower: int
    upper: int
    before: tuple[int, int | None]
    releases: tuple[int, ...]
    smallest: bool


@dataclass(frozen=True)
class Checked:
    """What was found, and how far was looked.

    Attributes
    ----------
    findings : sequence of Finding
        Small counts that can be worked out, those of many people's first.
    likely : sequence of Likely
        Small counts that perturbed counts make nearly certain.
    further : int
        Those that are part of one of these with the same bounds or likely values.
    combined : frozenset of int
        The earlier releases that were taken together with the table.
    complete : bool
        Whether all earlier releases that could matter were taken together at once, and
        no total was left out.
    """

    findings: Sequence[Finding]
    likely: Sequence[Likely]
    further: int
    combined: frozenset[int]
    complete: bool

    @property
    def nothing(self) -> bool:
        """Whether nothing was found."""
        return not (self.findings or self.likely or self.further)

    def not_combined(self, new: Sequence[PublishedTable], earlier: Sequence[Source]) -> list[int]:
        """The earlier releases that share variables with new tables and were not taken
        together with them.
        """
        own = frozenset[str]().union(*(table.variables for table in new))
        near = {release for release, table in earlier if not own or table.variables & own}
        return sorted(near - self.combined)
