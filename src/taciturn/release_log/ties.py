"""All that perturbed counts of a window say of a total."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from taciturn.release_log.answers import Answers, Chosen
from taciturn.release_log.codebook import Integers
from taciturn.release_log.evidence import Evidence, all_seen, bits_of
from taciturn.release_log.known import Hashes, Known, random_hashes
from taciturn.release_log.same_keys import once
from taciturn.release_log.sums import Sums
from taciturn.release_log.swapped import swapping_of
from taciturn.release_log.swapped_file import swapped_files
from taciturn.release_log.window import Source, Window

__all__ = ["Ties"]

_SAME: Final = 0  # a seed of the numbers that tell sets of cells apart


class Ties:
    """What perturbed counts of a window are tied to which totals, and sums of them.

    Parameters
    ----------
    window : Window
        What is published as it is, or as intervals, over classes that perturbed tables
        tell apart, too.
    noisy : sequence of Source
        Perturbed tables whose cells are made of whole classes.

    Attributes
    ----------
    known : Known
        What follows of totals from what is published as it is.
    seen : list of Seen
        All counts that were perturbed each for itself.
    swapped : list of SwappedFile
        The swapped files that tables are from.

    Raises
    ------
    TableError
        Two counts of the same records, with noise from the same keys by the same
        mechanism, differ; what is known does not give what was released.
    """

    def __init__(self, window: Window, noisy: Sequence[Source]) -> None:
        self.known = Known(window)
        nobody = self.known.upper == 0
        same = np.where(nobody, np.uint64(0), random_hashes(_SAME, len(nobody)))
        counted = [source for source in noisy if not swapping_of(source[1])]
        self.seen = once([x for x in all_seen(window, counted) if len(x.cells)], same)
        self.swapped = swapped_files(window, [each for each in noisy if swapping_of(each[1])])
        self._anybody = bits_of(np.flatnonzero(~nobody))
        self._answers = Answers(self.known, self.seen)
        self._sums = Sums(window, self._answers)

    @property
    def tied(self) -> Hashes:
        """The numbers of all totals that something was released of, or of what is tied
        to them.
        """
        return self._answers.tied

    def of(self, cells: Integers) -> Evidence:
        """What was released of a total, of all that is tied to it, and of sums that it
        is or is a part of; of swapped records what is known of the total itself.
        """
        is_open = self.known.hash_of(cells) > 0
        chosen = Chosen(self._anybody, {})
        found = [*chosen.take(self._answers.of(cells)).seen]
        sums = self._sums.of(cells, chosen) if is_open else []
        files = self.swapped if is_open else []
        found += [(1, 0, count) for file in files if (count := file.of(cells)) is not None]
        return Evidence(found, sums, any(file.lacks(cells) for file in self.swapped))
