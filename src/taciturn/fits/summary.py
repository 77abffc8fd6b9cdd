"""A fit as a person reads it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from html import escape
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr

from taciturn.diagnostics import AnyDiagnostics, array_stats
from taciturn.errors import TaciturnError
from taciturn.fits.categories import category_html, category_lines, category_records, category_table
from taciturn.fits.cautions import cautions_of
from taciturn.fits.checks import check_frame, check_lines, checks_of, missed_lines
from taciturn.fits.diagnose import diagnose
from taciturn.fits.mixtures import estimator_in_words, is_stack
from taciturn.fits.parts import FitParts, fit_parts, fraction_in_words
from taciturn.fits.problems import (
    NOT_CONVERGED,
    NOT_SHARED,
    not_to_be_relied_on,
    problems_of,
)
from taciturn.fits.recorded import recorded_estimator, recorded_settings
from taciturn.fits.risk import risk_of_fit
from taciturn.fits.sensitivity import sensitivity_lines, sensitivity_of
from taciturn.fits.table import draws_table, independent_draws
from taciturn.tables.values import json_value
from taciturn.validate import interval_probability, real_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Summary", "summary"]

TITLE: Final = "Disclosure risk of a sample table"


@dataclass(frozen=True)
class Summary:
    """What a fit says about the risk of its table; printing it gives the text, and a
    notebook shows tables.

    Attributes
    ----------
    facts : mapping of str to str
        What was fitted to what: call, estimator, formula, table, sample, known margins
        and weights, as far as the fit records them.
    table : pandas.DataFrame
        One row a measure: mean, sd, the interval, the median and the Monte Carlo error
        of the mean.
    categories : pandas.DataFrame or None
        The same for each category that `assess` was given `by`: one row a variable,
        category and measure; `empty` is the share of draws with nobody in the category,
        in which its risk is 0. None where no variable was given.
    diagnostics : Diagnostics, ImportanceDiagnostics, PooledDiagnostics or None
        Of the Markov chain, over all parameters and R2, of importance sampling, or of
        each member of a pool; None for plug-in estimators.
    draws : int
        Of the population.
    problems : tuple of str
        Why the numbers are not to be relied on, in words: what diagnostics and
        predictive checks of the fit found, or that it has too few draws; empty if
        nothing was found, or if the sample is the whole population.
    exceedance : float or None
        ``P(R2 > threshold)``, where a threshold was given.
    checks : Dataset or None
        What `predictive_checks` gives; None for a fit without replicated samples.
    sensitivity : pandas.DataFrame or None
        What `prior_sensitivity` gives; None where there is no prior, or too few draws.
    sentence : str
        What it means, in plain words; where there are `problems`, that the numbers are
        not to be relied on, and why.
    findings : mapping of str to str
        In words: the exceedance, the prior sensitivity and the diagnostics.
    text : str
        All of it, as printed.
    """

    facts: Mapping[str, str]
    table: "pd.DataFrame"
    categories: "pd.DataFrame | None"
    diagnostics: AnyDiagnostics | None
    draws: int
    problems: tuple[str, ...]
    exceedance: float | None
    checks: xr.Dataset | None
    sensitivity: "pd.DataFrame | None"
    sentence: str
    findings: Mapping[str, str]
    text: str

    @property
    def converged(self) -> bool:
        """Whether the numbers can be used as far as the sampler goes."""
        return not any(problem.startswith((NOT_CONVERGED, NOT_SHARED)) for problem in self.problems)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_dict(self) -> dict[str, Any]:
        """All numbers and texts as plain values, which JSON can hold; None where a
        number is missing or infinite.

        Returns
        -------
        dict
            ``sentence``, ``problems``, ``converged``, ``facts``, ``measures`` (each
            measure with its mean, sd, quantiles and Monte Carlo error), ``categories``
            (the same, one entry a variable, category and measure), ``exceedance``,
            ``checks``, ``sensitivity``, ``diagnostics`` and ``findings``.

        Examples
        --------
        >>> import taciturn as tc
        >>> sample = tc.draw_sample(tc.load_dataset("area_by_sex"), size=245)
        >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=50)
        >>> sorted(tc.summary(fit).to_dict()["measures"]["R2"])
        ['2.5%', '50%', '97.5%', 'mcse', 'mean', 'sd']
        """
        checks = None if self.checks is None else self.checks.to_dataframe().reset_index()
        found = {
            "sentence": self.sentence,
            "problems": list(self.problems),
            "converged": self.converged,
            "facts": dict(self.facts),
            "measures": self.table.to_dict("index"),
            "categories": None if self.categories is None else category_records(self.categories),
            "exceedance": self.exceedance,
            "checks": None if checks is None else checks.to_dict("records"),
            "sensitivity": None if self.sensitivity is None else self.sensitivity.to_dict("index"),
            "diagnostics": None if self.diagnostics is None else asdict(self.diagnostics),
            "findings": dict(self.findings),
        }
        return {name: json_value(value) for name, value in found.items()}

    def to_json(self) -> str:
        """`to_dict` as JSON, indented."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self) -> str:
        """All of it as a fragment of HTML: tables, and every label escaped."""
        parts = [
            f"<p><strong>{TITLE}</strong></p>",
            *([f"<p><strong>{escape(self.sentence)}</strong></p>"] if self.problems else []),
            _html_rows(self.facts.items()),
            self.table.to_html(border=0, float_format=lambda value: f"{value:.4f}"),
        ]
        if self.categories is not None:
            parts += category_html(self.categories)
        if self.checks is not None:
            parts.append("<p>The sample beside samples that the fitted model gives:</p>")
            parts.append(check_frame(self.checks).to_html(border=0))
            parts += [f"<p>{escape(line)}</p>" for line in missed_lines(self.checks)]
        parts.append(_html_rows(self.findings.items()))
        if not self.problems:
            parts.append(f"<p>{escape(self.sentence)}</p>")
        return "<div>\n" + "\n".join(parts) + "\n</div>"


def _html_rows(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and texts as a table of two columns."""
    rows = [
        f'<tr><th scope="row" style="text-align: left; vertical-align: top">{escape(name)}</th>'
        f'<td style="text-align: left">{"<br/>".join(map(escape, text.splitlines()))}</td></tr>'
        for name, text in pairs
    ]
    return "<table>\n" + "\n".join(rows) + "\n</table>"


def summary(
    fit: xr.DataTree, *, threshold: float | None = None, probability: float = 0.95
) -> Summary:
    """Summarise the risk of a sample table.

    Parameters
    ----------
    fit : DataTree
        A fit; it is assessed with the default weights if that was not done. Categories
        are summarised where they were assessed, with ``assess(by=...)``.
    threshold : float, optional
        Also give the posterior probability that R2 is above it, in ``[0, 1]``.
    probability : float
        Of the equal-tailed credible intervals, from 0.01 to 0.9999.

    Returns
    -------
    Summary

    Raises
    ------
    TableError
        What `assess` refuses.
    ParameterError
        `threshold` or `probability` outside its range.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=100, random_seed=1)
    >>> tc.summary(fit).table.columns.tolist()
    ['mean', 'sd', '2.5%', '50%', '97.5%', 'mcse']

    One line a category:

    >>> by_area = tc.summary(tc.assess(fit, by="area")).categories
    >>> by_area.xs("R2", level="measure").shape
    (10, 7)
    """
    if threshold is not None:
        threshold = real_number(threshold, "threshold", least=0, most=1)
    probability = interval_probability(probability)
    parts = fit_parts(fit)
    risk = risk_of_fit(fit, parts)
    diagnostics, draws = diagnose(fit, risk), risk["R2"].size
    independent = independent_draws(diagnostics, draws)
    table = draws_table(risk, probability, independent)
    categories = category_table(fit, probability, independent)
    exceedance = None if threshold is None else float((risk["R2"] > threshold).mean())
    checks = checks_of(fit, parts) if _has_replicates(fit) else None
    problems = () if parts.is_census else problems_of(diagnostics, checks, draws)
    said = not_to_be_relied_on(problems) if problems else _sentence(parts, table, probability)
    sentence = " ".join([said, *cautions_of(fit, parts, quoting=True)])
    facts, (sensitivity, prior_text) = _facts(fit, parts, risk), _sensitivity(fit, parts, risk)
    findings = {"Prior": prior_text, "Diagnostics": _diagnostics_text(fit, diagnostics)}
    if threshold is not None:
        above = _exceedance_text(risk["R2"] > threshold, threshold, independent)
        findings = {"Exceedance": above} | findings
    lines = [
        TITLE,
        "",
        *([sentence, ""] if problems else []),
        *(line for name, text in facts.items() for line in _labelled(name, text, 11)),
        "",
        table.to_string(float_format=lambda value: f"{value:.4f}"),
        "",
        *([] if categories is None else category_lines(categories)),
        *_checked(checks),
        "",
    ]
    lines += [line for name, text in findings.items() for line in _labelled(name, text, 13)]
    lines += [] if problems else ["", sentence]
    return Summary(
        facts,
        table,
        categories,
        diagnostics,
        draws,
        problems,
        exceedance,
        checks,
        sensitivity,
        sentence,
        findings,
        "\n".join(lines),
    )


def _labelled(name: str, text: str, width: int) -> list[str]:
    """Lines of a text behind its name, aligned."""
    first, *others = text.splitlines()
    return [f"{f'{name}:':<{width}}{first}", *(" " * width + line for line in others)]


def _checked(checks: xr.Dataset | None) -> list[str]:
    if checks is None:
        return ["Checks:      the fit holds no samples of the fitted model"]
    return ["The sample beside samples that the fitted model gives:", "", *check_lines(checks)]


def _has_replicates(fit: xr.DataTree) -> bool:
    return "count" in fit["posterior_predictive"].data_vars


def _sensitivity(
    fit: xr.DataTree, parts: FitParts, risk: xr.Dataset
) -> tuple["pd.DataFrame | None", str]:
    try:
        table = sensitivity_of(fit, parts, risk=risk)
    except TaciturnError as error:
        # No prior, too few draws, or another package's fit, which is summarised, too.
        return None, f"not scaled: {error}"
    return table, "\n".join(sensitivity_lines(table))


def _exceedance_text(above: xr.DataArray, threshold: float, independent: float | None) -> str:
    share = float(above.mean())
    if share in (0, 1):
        return f"P(R2 > {threshold:g}): {'none' if share == 0 else 'all'} of {above.size} draws"
    if f"{share:.3f}" in ("0.000", "1.000"):
        return f"P(R2 > {threshold:g}): {int(above.sum())} of {above.size} draws"
    draws = above.transpose("chain", "draw").values.astype(float)
    effective = independent or float(
        array_stats().ess(draws, chain_axis=0, draw_axis=1, method="mean")
    )
    error = sqrt(share * (1 - share) / (effective if isfinite(effective) else above.size))
    return f"P(R2 > {threshold:g}) = {share:.3f} (Monte Carlo error {error:.3f})"


def _facts(fit: xr.DataTree, parts: FitParts, risk: xr.Dataset) -> dict[str, str]:
    sample, population_size, margins = parts.sample, parts.population_size, parts.known_margins
    size, cells, closed = int(sample.sum()), parts.cells, sample.size - parts.cells
    variables = " x ".join(f"{dim} ({sample.sizes[dim]})" for dim in parts.variables)
    structural = f", {closed} structural zeros" if closed else ""
    empty, unique = cells - int((sample > 0).sum()), int((sample == 1).sum())
    facts = {
        **_call(fit, parts),
        "Table": f"{variables}, K = {cells} cells{structural}; {empty} empty,"
        f" {unique} unique in the sample",
        "Sample": f"n = {size} of N = {population_size},"
        f" fraction {fraction_in_words(size / population_size)}{parts.design}",
    }
    if margins is not None:
        facts["Known"] = f"the population's table of {' x '.join(map(str, margins.dims))}"
    if "weights" in risk.attrs:
        facts["Weights"] = ", ".join(f"{w:g}" for w in np.atleast_1d(risk.attrs["weights"]))
    return facts


def _call(fit: xr.DataTree, parts: FitParts) -> dict[str, str]:
    made = {"Estimator": estimator_in_words(fit)}
    estimator = None if is_stack(fit) else recorded_estimator(fit)
    if estimator is None:
        return made
    settings = recorded_settings(fit).recorded if "settings" in fit.attrs else {}
    given = ", ".join([*parts.arguments, *(f"{name}={own!r}" for name, own in settings.items())])
    call = {"Call": f"{estimator!r}\n.fit(sample, {given})", **made}
    if hasattr(estimator, "formula"):
        call["Formula"] = estimator.formula or f"~ {' + '.join(parts.variables)}"
    return call


def _diagnostics_text(fit: xr.DataTree, diagnostics: AnyDiagnostics | None) -> str:
    if diagnostics is None and recorded_estimator(fit) is None:
        return (
            "none, the fit holds no posterior: whether its draws can be relied on is not known here"
        )
    if diagnostics is None:
        return (
            "none needed, the draws are independent; the parameters are plugged in, not fitted with"
            " uncertainty"
        )
    if diagnostics.converged:
        return f"{diagnostics}: converged"
    return f"{diagnostics}\nNOT CONVERGED: {'; '.join(diagnostics.problems)}"


def _sentence(parts: FitParts, table: "pd.DataFrame", probability: float) -> str:
    low, _, high = table.columns[2:5]
    r2, tau = table.loc["R2"], table.loc["tau1"]
    uniques = int((parts.sample == 1).sum())
    if parts.is_census:
        return (
            "In words: the sample is the whole population: the table gives away"
            f" R2 = {r2['mean']:.3f} on a scale from 0 to 1. Uniques, people alone in their cell:"
            f" {uniques}."
        )
    return (
        f"In words: under this model the sample table gives away R2 = {r2['mean']:.3f} on a scale"
        f" from 0 to 1, with probability {probability:g} between {r2[low]:.3f} and {r2[high]:.3f}."
        f" Sample uniques, people alone in their cell: {uniques}; expected to be alone in the"
        f" population too: {tau['mean']:.1f} ({tau[low]:.0f} to {tau[high]:.0f})."
    )
