"""From a fit, and releases of its table, to one page of HTML."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import xarray as xr

from taciturn.errors import ParameterError
from taciturn.files import check_ending, check_output, whole_file
from taciturn.release_log import ReleaseLog, Verdict
from taciturn.reports.contents import Contents, gathered
from taciturn.reports.releases import Protection
from taciturn.validate import quoted, real_number

__all__ = ["report", "write_page"]


def report(
    fit: xr.DataTree,
    path: str | PathLike[str],
    *,
    releases: Mapping[str, Protection] | None = None,
    log: ReleaseLog | None = None,
    verdict: Verdict | None = None,
    threshold: float | None = None,
    public: bool = False,
    title: str | None = None,
    overwrite: bool = False,
    progressbar: bool = True,
) -> None:
    """Write the page that a release panel reads: one HTML file that needs nothing else.

    It begins with a verdict in a sentence and what that rests on, or, where diagnostics
    or predictive checks failed, with the advice not to rely on the numbers. It goes on
    with R2 beside that of well-known tables; the risk of each category; the riskiest
    cells; checks of the model and of the prior; the risk and the utility of protected
    tables, and what an attacker works out from releases; what was released before and
    what the next release adds to it; what is assumed, versions and how to repeat the
    fit.

    Parameters
    ----------
    fit : DataTree
        A fit; the weights are those with which it was assessed, or the default ones.
    path : path
        Ends in ``.html``. The file appears complete or not at all.
    releases : mapping of str to DataArray, SuppressionPattern or Release, optional
        What may be released instead of the sample table, by name: tables that a
        protection method returned are put on the risk-utility map, all others are
        attacked.
    log : ReleaseLog, optional
        What was released before of the same records; its variables have the names of
        the table's.
    verdict : Verdict, optional
        What `ReleaseLog.check` says of the release that the page is about, of the log
        as it is; needs `log`.
    threshold : float, optional
        Also give the probability that R2 is above it, in ``[0, 1]``.
    public : bool
        Without counts and labels of single cells, without numbers by which a candidate
        for the table could be recognised (exact values, the seed, the sample's
        statistics, R2 of categories), and with two decimals. With releases, or with a
        log, also without R1 and R2, which may tell which of the tables that are left is
        the true one; how many people the sample has only where all releases, none of
        them perturbed, and that of the verdict, say so.
    title : str, optional
        The heading; by default the variables of the table.
    overwrite : bool
        Replace a file that exists.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Raises
    ------
    FileFormatError
        Another ending; something is there already, and it is no regular file or
        `overwrite` is False; the file cannot be written.
    TableError
        What `assess` refuses; a perturbed table with other categories.
    ParameterError
        A threshold out of range; releases that are none, or of another table; a log of
        other variables; a verdict without its log, on a table of other variables or
        other counts, or older than the last release of the log; with `public`, a
        release some of whose unpublished cells can be worked out, a pattern that is not
        proved to protect, or a verdict that did not pass.
    MissingDependencyError
        Jinja2 or matplotlib is not installed.

    Notes
    -----
    *What is internal.* Without `public` the page quotes counts of the sample and labels
    of single cells, and says that it is not for release.

    *No network.* Pictures are part of the page, and it holds no script.

    Examples
    --------
    >>> import taciturn as tc
    >>> census = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(census, fraction=0.1, random_seed=1)
    >>> fit = tc.LinearPool().fit(sample, population_size=2449, random_seed=1)
    >>> rounded = tc.random_round(sample, rounding_base=5)
    >>> tc.report(
    ...     fit, "panel.html", releases={"rounded to 5": rounded}, threshold=0.2
    ... )  # doctest: +SKIP
    """
    target = Path(path)
    check_ending(target, (".html",))
    check_output(target, overwrite=overwrite)
    if threshold is not None:
        threshold = real_number(threshold, "threshold", least=0, most=1)
    _check_title(title)
    contents = gathered(
        fit, releases, log=log, verdict=verdict, threshold=threshold, progressbar=progressbar
    )
    write_page(
        contents, target, threshold=threshold, public=public, title=title, overwrite=overwrite
    )


def write_page(
    contents: Contents,
    path: Path,
    *,
    threshold: float | None,
    public: bool,
    title: str | None,
    overwrite: bool,
) -> None:
    """Write what was gathered, for the office or for the public."""
    from taciturn.reports.texts import texts

    if public:
        _check_public(contents)
    shown = texts(contents, threshold=threshold, public=public, title=title)
    page = _template().render(shown)
    with whole_file(path, overwrite=overwrite) as file:
        file.write(page.encode())


def _check_title(title: Any) -> None:
    if title is not None and (not isinstance(title, str) or not title.strip()):
        raise ParameterError(f"title must be text, got {quoted(title)}")


def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("taciturn.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


def _check_public(contents: Contents) -> None:
    for finding in contents.findings:
        if finding.disclosed:
            raise ParameterError(
                f"{finding.disclosed} of {finding.hidden} unpublished cells of"
                f" {finding.name!r:.80} can be worked out, which a public page must not say: leave"
                " the release out, or write the page without public"
            )
        if finding.unproved:
            raise ParameterError(
                f"{finding.name!r:.80} must not be released: {finding.unproved}. Leave it out, or"
                " write the page without public"
            )
        if finding.lacks:
            raise ParameterError(
                f"{finding.name!r:.80} has no {' or '.join(map(repr, finding.lacks))}: cells of the"
                " table, which are by that too, were not looked at. Leave it out, write the page"
                " without public, or give LinkedTables of the whole table"
            )
    if contents.earlier is not None and contents.earlier.found:
        raise ParameterError(
            "small counts could be worked out after this verdict, which a public page must not say:"
            " leave the verdict out, or write the page without public"
        )
