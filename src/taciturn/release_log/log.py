"""A log of what was released of one project, and what the next table gives away."""

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from taciturn.errors import ParameterError
from taciturn.progress import progress_steps
from taciturn.release_log.advice import advice
from taciturn.release_log.checking import check_tables, refuse_contradictions
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.database import Database, create, names_of
from taciturn.release_log.mechanisms import Stored
from taciturn.release_log.published import same_tables
from taciturn.release_log.reading import Defined, Merged, Where, published_tables
from taciturn.release_log.search import Limits
from taciturn.release_log.verdict import Verdict
from taciturn.release_log.words import log_in_words
from taciturn.schema import MAX_COUNT
from taciturn.validate import quoted, whole_number

__all__ = ["ReleaseLog"]


class ReleaseLog:
    r"""What was released of the base records of one project, in one DuckDB file, and
    what the next table gives away together with all of it.

    A frequency table is released with its definition: its variables, the categories
    that it merges, and by which variables records were selected. All published counts
    are then sums over the same cells, those of the variables of the log crossed with
    each other, of which an attacker knows that

    .. math:: l \le A x \le h, \qquad x \ge 0, \qquad x \in \mathbb{Z}^n

    for the published counts or intervals `l` to `h`. A total of cells is worked out
    where all compatible tables agree on it. Two tables whose filters differ by one
    person have a difference that is such a total.

    Counts that a known mechanism perturbed say which values are how likely. A total
    that they leave open may still be nearly certain, the more so the oftener it was
    asked for.

    The log holds what is public, and nothing else: the variables with their categories,
    the number of records if it is given, and for each release its name, date,
    protection, definition, the counts or intervals that are published, and the
    mechanism by which they were perturbed. It holds no record, no key of one, no
    suppressed count and no true value of a rounded or perturbed one.

    Parameters
    ----------
    path : path
        The file. It is made where `variables` are given, and must exist otherwise.
    variables : mapping of str to sequence, optional
        All categories of each variable, by which every record has one: if a label may
        be missing, a category for that.
    levels : mapping of str to (str, sequence), optional
        Levels above variables, each with its variable and the label of each of its
        categories, such as ``{"region": ("area", ["North", "North", "South"])}``.
    total : int, optional
        The number of base records, if it is public. A table of everybody must then add
        up to it.
    overwrite : bool
        Replace a file that exists by the new log, and forget what it held. A log that
        cannot be opened is not replaced.

    Raises
    ------
    FileFormatError
        A file that exists, where one is to be made; one that is missing, no release
        log, damaged, or held by another process for ten seconds.
    ParameterError
        Variables without categories, or with one of them twice; levels of variables
        that there are not, or with another number of labels.
    MissingDependencyError
        DuckDB is not installed: the extra ``release-log``.

    References
    ----------
    Asghar & Kaafar (2020), Averaging attacks on bounded noise-based disclosure control
    algorithms, Proceedings on Privacy Enhancing Technologies 2020(2), 358-378: attacks
    on table builders by several queries. Bounds: Oganian & Domingo-Ferrer (2003),
    Section 4.4, expressions (6) to (8).

    Examples
    --------
    >>> import tempfile, pandas as pd, taciturn as tc
    >>> folder = tempfile.TemporaryDirectory()
    >>> variables = {"age": ["16-64", "65", "66+"], "sex": ["f", "m"]}
    >>> log = tc.ReleaseLog(f"{folder.name}/project.duckdb", variables=variables)
    >>> all_ages = pd.Series({"f": 51, "m": 48}).rename_axis("sex")
    >>> log.add(all_ages, name="all")
    1
    >>> not_65 = pd.Series({"f": 50, "m": 48}).rename_axis("sex")
    >>> log.check(not_65, where={"age": ["16-64", "66+"]}, progressbar=False)
    Do not release: 2 small counts could be worked out.
      age=65: 1 (0 to 99 before), with all
      and 1 that are part of these
    To release it: suppress sex=f.
    To release it: round to base 3.
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        variables: Mapping[str, Sequence[Any]] | None = None,
        levels: Mapping[str, tuple[str, Sequence[Any]]] | None = None,
        total: int | None = None,
        overwrite: bool = False,
    ) -> None:
        if not isinstance(path, str | PathLike):
            raise ParameterError(f"path must be that of a file, got {quoted(path)}")
        self.path = Path(path)
        if variables is not None:
            if total is not None:
                total = whole_number(total, "total", least=0, most=MAX_COUNT)
            create(self.path, Codebook.of(variables, levels, total), overwrite=overwrite)
        elif levels is not None or total is not None or overwrite:
            raise ParameterError(
                "levels, total and overwrite are given with the variables of a new log"
            )
        self._database = Database(self.path)
        self.codebook = self._database.codebook

    def check(
        self,
        table: Any,
        *,
        where: Where | None = None,
        merge: Merged | None = None,
        mechanism: Stored | None = None,
        keys: str | None = None,
        threshold: int = 10,
        values: int = 2,
        certainty: float = 0.95,
        advise: bool = True,
        total: str = "Total",
        progressbar: bool = True,
    ) -> Verdict:
        """What an attacker could work out with this table, and could not, or with more
        values left, before.

        Looked for are small counts, from 1 to below `threshold`, with fewer than
        `values` possible values, of

        - cells: all combinations of categories that releases tell apart;
        - totals over any of the variables;
        - differences: along one variable also what one table counts and another does
          not.

        A walk among the compatible tables first shows which of these are open; the
        others get exact bounds.

        Of counts that a mechanism perturbed, their sums, and totals that are tied to
        them by a constant, also those that bounds leave open, and of which fewer than
        `values` small values have the probability `certainty` together, if all within
        the bounds are equally likely before: these are `Verdict.likely`.

        Parameters
        ----------
        table : DataArray, DataFrame, Series, Release or SuppressionPattern
            Counts over variables of the log or levels above them, missing where they
            are not published: `pandas.crosstab`, sizes of groups, a table in long form
            with a column ``count`` and perhaps ``status``, or intervals, ``lower`` and
            ``upper``. A category without a row holds nobody. Of a release only what it
            publishes; `attack.Perturbed` has its mechanism, and may hold several
            answers.
        where : mapping of str to label or sequence of labels, optional
            For each variable by which records were selected the categories of those
            that are counted.
        merge : mapping of str to mapping, optional
            The categories that each merged category of the table combines, as in
            `GlobalRecoding`.
        mechanism : Mechanism or RecordSwapping, optional
            By which the counts of the table were perturbed, each for itself, if they
            were: `RandomRounding`, `ConventionalRounding`, `SmallCellAdjustment`,
            `GeometricNoise` or `CellKeys` of `taciturn.attack`; or how the records that
            it counts were swapped. It is logged, so it must be public.
        keys : str, optional
            What the keys of the records are called from which the noise follows, or the
            file of swapped records. Where two releases with the same keys count the
            same records, this is one answer; where answers differ, they are not the
            same. By default no other release has the same keys. By cell keys with
            several perturbation tables it must be said.
        threshold : int
            Counts below it are small.
        values : int
            How many values a small count must be able to have; with 2, it must not be
            known exactly.
        certainty : float
            The probability from which on fewer values than that are nearly certain,
            above 0 and at most 1.
        advise : bool
            Look for changes after which nothing is found.
        total : str
            Label of totals in data frames, such as ``"All"`` with the `margins` of
            `pandas.crosstab`.
        progressbar : bool
            Show progress, on standard error or below the cell of a notebook.

        Returns
        -------
        Verdict

        Raises
        ------
        TableError
            A category that the log does not have, a cell given twice, counts that are
            no whole numbers, a perturbed table without its mechanism, or counts that it
            does not give; a table of everybody that does not add up to the number of
            records; a table that contradicts what was released.
        ParameterError
            A variable that the log does not have; `threshold` or `values` below 2, or a
            `certainty` that is no probability; a mechanism that is none of these,
            `keys` without one, or none where they must be said.
        AttackError
            The solver finds no solution in whole numbers.
        """
        limits = Limits.checked(threshold, values, certainty)
        given: Defined = {"where": where, "merge": merge, "mechanism": mechanism, "keys": keys}
        tables = published_tables(table, self.codebook, total=total, **given)
        releases, earlier = self._database.all()
        check = partial(check_tables, earlier=earlier, codebook=self.codebook, limits=limits)
        with progress_steps("working out what the releases say together", shown=progressbar) as on:
            found = check(tables)
            changes = []
            if not found.nothing and advise:
                on("looking for what would be enough")
                changes = advice(tables, found, self.codebook, check)
        names = names_of(releases)
        left = [] if found.complete else found.not_combined(tables, earlier)
        return Verdict(
            findings=found.findings,
            likely=found.likely,
            further=found.further,
            advice=changes,
            threshold=limits.threshold,
            values=limits.values,
            certainty=limits.certainty,
            complete=found.complete,
            not_combined=tuple(names[release] for release in left),
            names=names,
            log=self.id,
            tables=tables,
            advised=advise,
        )

    def add(
        self,
        table: Any,
        *,
        name: str | None = None,
        protection: str = "",
        where: Where | None = None,
        merge: Merged | None = None,
        mechanism: Stored | None = None,
        keys: str | None = None,
        total: str = "Total",
        after: Verdict | None = None,
    ) -> int:
        """Log a table that was released.

        Parameters
        ----------
        table, where, merge, mechanism, keys, total
            As for `check`.
        name : str, optional
            What the release is called; by default its number. Names are unique.
        protection : str
            How it is protected, in words.
        after : Verdict, optional
            The verdict on this table: it is logged only if the log has not changed
            since, and if the table is the one that was checked.

        Returns
        -------
        int
            The number of the release.

        Raises
        ------
        TableError, FileFormatError
            As for `check`, and the file cannot be written.
        ParameterError
            A name that is taken; a table that was not the one checked, or checked by
            another log, or a log that has changed since.
        """
        given: Defined = {"where": where, "merge": merge, "mechanism": mechanism, "keys": keys}
        tables = published_tables(table, self.codebook, total=total, **given)
        if after is None:
            check = partial(refuse_contradictions, tables, codebook=self.codebook)
            return self._database.add_checked(name, protection, tables, check)
        if not isinstance(after, Verdict):
            raise ParameterError(f"after must be a Verdict of `check`, got {quoted(after)}")
        if after.log != self.id:
            raise ParameterError("after must be a verdict of this log, it is that of another")
        if not same_tables(tables, after.tables):
            raise ParameterError("after must be the verdict on this table, it is that on another")
        return self._database.add(name, protection, tables, after=after.names)

    def remove(self, name: str) -> int:
        """Take out a table that was logged by mistake and never released, or that is
        logged again with what was left out. With the former the log takes for known
        what nobody knows, and passes what gives that away.

        Parameters
        ----------
        name : str
            What the release is called.

        Returns
        -------
        int
            Its number, which no other release gets.

        Raises
        ------
        ParameterError, FileFormatError
            There is no release of this name; the file cannot be written.
        """
        return self._database.remove(name)

    def number_of(
        self,
        table: Any,
        *,
        name: str,
        protection: str = "",
        where: Where | None = None,
        merge: Merged | None = None,
        mechanism: Stored | None = None,
        keys: str | None = None,
        total: str = "Total",
    ) -> int | None:
        """The number of the release of this name, if there is one: for whoever does not
        know whether `add` was done, and asks again.

        Parameters
        ----------
        table, name, protection, where, merge, mechanism, keys, total
            As for `add`.

        Returns
        -------
        int or None

        Raises
        ------
        TableError
            As for `check`.
        ParameterError
            The release of this name is another table, or has another protection.
        """
        given: Defined = {"where": where, "merge": merge, "mechanism": mechanism, "keys": keys}
        tables = published_tables(table, self.codebook, total=total, **given)
        releases, logged = self._database.all()
        for number, other, _, how in releases:
            if other == name:
                if not same_tables(tables, [each for release, each in logged if release == number]):
                    raise ParameterError(f"release {number} is called {name!r}, with another table")
                if how != protection:
                    raise ParameterError(
                        f"release {number} is called {name!r}, with the protection {how!r}, got"
                        f" {protection!r}"
                    )
                return int(number)
        return None

    @property
    def id(self) -> str:
        """What tells this log from all others; a file that is made anew has another."""
        return self._database.id

    @property
    def releases(self) -> pd.DataFrame:
        """The releases of the log: ``name``, ``added`` (UTC) and ``protection``, by
        number.
        """
        rows = self._database.releases()
        columns = ["number", "name", "added", "protection"]
        return pd.DataFrame(rows, columns=columns).set_index("number")

    def lines(self) -> list[str]:
        """What the log holds, in words."""
        releases, tables = self._database.all()
        return log_in_words(self.codebook, len(releases), [table for _, table in tables])

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return f"<p>{'<br>'.join(map(escape, self.lines()))}</p>"
