"""The words and numbers of the page, for the office or for the public."""

import re
from collections.abc import Iterator
from math import ceil, inf, log2
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from taciturn.errors import TaciturnError
from taciturn.figures import beside
from taciturn.fits.cautions import cautions_of
from taciturn.fits.checks import (
    check_frame,
    inside,
    is_rough,
    missed,
    missed_lines,
    of_whole_fit,
)
from taciturn.fits.mixtures import estimator_in_words
from taciturn.fits.parts import FitParts, fraction_in_words
from taciturn.fits.problems import (
    NOT_ALIKE,
    NOT_CONVERGED,
    TOO_FEW,
    are_too_few,
    not_to_be_relied_on,
)
from taciturn.fits.recorded import recorded_estimator, recorded_mapping
from taciturn.fits.summary import Summary
from taciturn.plots.shared import plain_labels
from taciturn.reports.contents import Contents
from taciturn.reports.earlier import earlier_texts
from taciturn.reports.pictures import (
    category_picture,
    check_picture,
    map_picture,
    yardstick_picture,
)
from taciturn.reports.releases import ORIGINAL
from taciturn.reports.yardstick import between
from taciturn.tables.spelling import legible

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["texts"]

_MEASURES: Final = {
    "R2": "risk of releasing the sample table",
    "R1": "risk of releasing the whole population's table",
    "zero_term": "part of R2: what is known of empty cells",
    "entropy_term": "part of R2: how unevenly people are spread, as far as the release shows it",
    "size_term": "part of R2: how small the population is",
    "tau1": "number of people who are alone in their cell both in the sample and in the population",
    "tau2": "number of correct matches to be expected if each person who is alone in a cell of the"
    " sample is matched with somebody of that cell in the population",
}
_RISK_IS_LEFT_OUT: Final = (
    "The risk of the table is left out: it is made of all counts, and may tell which of the tables"
    " that a release leaves possible is the true one."
)
_PUBLIC_MEASURES: Final = ("R2", "R1")
_MOST_CATEGORIES: Final = 40
_NUMBERS: Final = re.compile(r" \(sensitivity [^)]*\)")


def texts(
    contents: Contents, *, threshold: float | None, public: bool, title: str | None
) -> dict[str, Any]:
    """What the template is given, by name."""
    digits = 2 if public else 4
    parts, found = contents.parts, contents.found
    row, everybody = contents.row, _everybody(contents)
    low, high = row["2.5%"], row["97.5%"]
    of_risk = contents.of_risk_alone or not public
    problems = list(found.problems)
    if public:
        problems = _problems(found) if of_risk else []
    return {
        "title": title or " × ".join(parts.variables),
        "public": public,
        "problems": problems,
        "verdict": _verdict(contents, problems, threshold, public=public),
        "sampling": _sampling(parts, public=public),
        "rests_on": list(_rests_on(contents, public=public)),
        "of_risk": of_risk,
        "yardstick": yardstick_picture(_shown((low, row["mean"], high), public), contents.marks)
        if of_risk
        else None,
        "between": between(row["mean"], contents.marks),
        "measures": [
            (name, [f"{value:.{digits}f}" for value in found.table.loc[name][:5]], _MEASURES[name])
            for name in (_PUBLIC_MEASURES if public else _MEASURES)
            if name in found.table.index
        ],
        "measure_columns": list(found.table.columns[:5]),
        "categories": [] if public else list(_categories(contents)),
        "uniques": [
            (cell.label, [_probability(p, sure=everybody) for p in (cell.p_unique, cell.p_match)])
            for cell in contents.uniques
        ],
        "n_uniques": contents.n_uniques,
        "checks": None if found.checks is None else _checks(contents, public=public),
        "check_picture": None if public or found.checks is None else check_picture(contents.fit),
        "sensitivity": [_prior(found)] if public else found.findings["Prior"].splitlines(),
        "diagnostics": [_sampler(contents)]
        if public
        else found.findings["Diagnostics"].splitlines(),
        "map": None if contents.map is None or public else map_picture(contents.map),
        "map_rows": [] if contents.map is None or public else _map_rows(contents.map),
        "findings": [_finding(finding, public=public) for finding in contents.findings],
        "earlier": None
        if contents.earlier is None
        else earlier_texts(contents.earlier, public=public),
        "versions": _versions(contents.fit),
        "call": None if public else found.facts.get("Call"),
    }


def _problems(found: Summary) -> list[str]:
    """The problems of a fit without their details, which quote the sample."""
    if not found.problems:
        return []
    there = {
        NOT_CONVERGED: not found.converged,
        TOO_FEW: are_too_few(found.draws),
        NOT_ALIKE: not _looks_alike(found),
    }
    return [problem for problem, is_there in there.items() if is_there]


def _looks_alike(found: Summary) -> bool:
    """Whether no check of the model failed."""
    return found.checks is None or not missed(found.checks)


def _verdict(
    contents: Contents, problems: list[str], threshold: float | None, *, public: bool
) -> str:
    """What the panel reads first."""
    cautions = cautions_of(contents.fit, contents.parts, quoting=not public)
    if problems:
        said = [not_to_be_relied_on(problems), *cautions]
    elif public and not contents.of_risk_alone:
        said = [_RISK_IS_LEFT_OUT]
    else:
        said = [_risk_in_words(contents, threshold, public=public), *cautions]
        above = contents.found.exceedance
        if threshold is not None and above is not None:
            shown = _probability(above, sure=_everybody(contents))
            said.append(f"It is above {_as_given(threshold)} with probability {shown}.")
    # What can be worked out does not depend on the fit.
    said += [
        f"{finding.disclosed:,} of the {finding.hidden:,} unpublished cells of"
        f" {legible(finding.name)} can be worked out: it must not be released as it is."
        for finding in contents.findings
        if finding.disclosed
    ]
    said += [
        f"{legible(finding.name)} must not be released: {finding.unproved}."
        for finding in contents.findings
        if finding.unproved
    ]
    said += [_not_looked_at(finding) for finding in contents.findings if finding.lacks]
    if contents.earlier is not None and contents.earlier.found:
        said.append(
            "Together with what was released before, small counts could be worked out from the next"
            " release: it must not be released as it is."
        )
    return " ".join(said)


def _risk_in_words(contents: Contents, threshold: float | None, *, public: bool) -> str:
    """R2 and how sure that is."""
    mean, low, high = (
        _risk(contents.row[name], threshold, public=public) for name in ("mean", "2.5%", "97.5%")
    )
    return (
        f"Under this model, releasing the sample table carries a risk of R2 = {mean} on a scale"
        f" from 0 to 1; with probability 0.95 it is between {low} and {high}."
    )


def _risk(value: float, threshold: float | None, *, public: bool) -> str:
    """In two decimals; where these are on the other side of a threshold, in as many
    more as it takes, or for the public, who are given no more, in words.
    """
    text = f"{value:.2f}"
    if threshold is None:
        return text
    exact = beside(value, threshold, decimals=2)
    if exact == text or not public:
        return exact
    return f"just {'above' if value > threshold else 'below'} {_as_given(threshold)}"


def _as_given(threshold: float) -> str:
    """With all its decimals."""
    return np.format_float_positional(threshold, trim="-")


def _everybody(contents: Contents) -> bool:
    """Whether the sample is the population."""
    return int(contents.parts.sample.sum()) == contents.parts.population_size


def _probability(share: float, *, sure: bool) -> str:
    """In two decimals; neither 0 nor 1 of draws, unless nothing is uncertain."""
    text = f"{share:.2f}"
    if sure or text not in ("0.00", "1.00"):
        return text
    return "below 0.01" if text == "0.00" else "above 0.99"


def _rests_on(contents: Contents, *, public: bool) -> Iterator[tuple[str, str]]:
    """What the verdict rests on, each with its name."""
    parts, found = contents.parts, contents.found
    yield "Sample", f"{_size(contents, public=public)}; taken as {_sampling(parts, public=public)}"
    variables = " × ".join(f"{name} ({parts.sample.sizes[name]})" for name in parts.variables)
    closed = parts.sample.size - parts.cells
    zeros = f", {closed:,} structural zeros" if closed else ""
    counts = int((parts.sample == 0).sum()) - closed, contents.n_uniques
    seen = "" if public else f"; {counts[0]:,} empty, {counts[1]:,} with one person in the sample"
    yield "Table", f"{variables}: {parts.cells:,} cells{zeros}{seen}"
    of_risk = contents.of_risk_alone or not public
    if of_risk:
        # The shares that the sample gave to members tell it from others like it.
        yield "Model", estimator_in_words(contents.fit, shares=not public)
    if public and contents.map is not None:
        names = [legible(name) for name in contents.map["protection"].values if name != ORIGINAL]
        yield "Released", f"{', '.join(names)}: perturbed, any count may be another one"
    if "Known" in found.facts:
        yield "Known", found.facts["Known"]
    if not of_risk:  # how well the model does is made of all counts, too
        return
    zero, entropy, size_weight = (f"{weight:g}" for weight in contents.weights)
    yield "Weights", f"{zero} for empty cells, {entropy} for unevenness, {size_weight} for size"
    yield "Sampler", _sampler(contents)
    if found.checks is None:
        yield "Model checks", "none: the fit holds no samples of the fitted model"
    else:
        said = "looks" if _looks_alike(found) else "DOES NOT LOOK"
        text = f"the sample {said} like samples that the fitted model gives"
        rough = "a rough comparison, as people were sampled together: nothing follows from it"
        yield "Model checks", rough if is_rough(found.checks) else text
    yield "Prior", _prior(found) if public else found.findings["Prior"].splitlines()[0]


def _size(contents: Contents, *, public: bool) -> str:
    """How many people are in the sample; not for the public where what is released does
    not say so, as it would be one more total.
    """
    size, whole = int(contents.parts.sample.sum()), contents.parts.population_size
    if not public or contents.gives_size:
        return f"{size:,} of {whole:,} people, a fraction of {fraction_in_words(size / whole)}"
    some = "all people" if _everybody(contents) else f"some of {whole:,} people"
    return f"{some}; their number is left out, as what is released does not give it"


def _sampling(parts: FitParts, *, public: bool) -> str:
    """How the sample is taken to have been drawn; for the public without the number
    that its weights are worth.
    """
    if public and parts.together:
        return "a weighted sample that says less than as many people sampled one by one"
    return legible(parts.assumed)


def _prior(found: Summary) -> str:
    """Whether R2 moves with the priors; the number would tell of the table."""
    return _NUMBERS.sub("", found.findings["Prior"].splitlines()[0])


def _sampler(contents: Contents) -> str:
    if not contents.found.converged:
        return "did not converge"
    if contents.found.diagnostics is None and recorded_estimator(contents.fit) is None:
        return "none: whether the draws can be relied on is not known here"
    if contents.found.diagnostics is None:
        return "none: no parameters were sampled"
    return "no problem found"


def _shown(numbers: tuple[float, float, float], public: bool) -> tuple[float, float, float]:
    """Numbers as they are drawn: for the public no more exact than they are printed."""
    low, middle, high = numbers
    return (round(low, 2), round(middle, 2), round(high, 2)) if public else numbers


def _categories(contents: Contents) -> Iterator[dict[str, Any]]:
    """Each variable with its riskiest categories, these first."""
    for own in contents.categories:
        chosen = np.argsort(-own.risk[:, 1], kind="stable")[:_MOST_CATEGORIES]
        labels = [own.labels[at] for at in chosen]
        drawn = plain_labels(own.labels)  # numbered in the order of the table
        risk = own.risk[chosen]
        yield {
            "variable": own.variable,
            "left_out": len(own.labels) - len(chosen),
            "picture": category_picture(own.variable, [drawn[at] for at in chosen], risk),
            "shown": len(chosen),
            "rows": [
                (label, [*(f"{value:.4f}" for value in ends), beside(empty, 0, 1, decimals=3)])
                for label, ends, empty in zip(labels, risk, own.empty[chosen], strict=True)
            ],
        }


def _checks(contents: Contents, *, public: bool) -> dict[str, Any]:
    checks = contents.found.checks
    assert checks is not None
    frame = check_frame(checks)
    if public:
        rows = [
            (name, ["inside the 95 % interval" if within else "OUTSIDE the 95 % interval"])
            for name, within in zip(frame.index, inside(of_whole_fit(checks)).values, strict=True)
        ]
        return {"columns": ["", "the sample is"], "rows": rows, "missed": []}
    rows = list(zip(frame.index, frame.values.tolist(), strict=True))
    return {"columns": ["", *frame.columns], "rows": rows, "missed": missed_lines(checks)}


def _map_rows(utility: "xr.Dataset") -> list[tuple[str, list[str]]]:
    """R2 of each protection with its interval, and what it changes."""
    rows = []
    for name in utility["protection"].values.tolist():
        own = utility.sel(protection=name)
        losses = [float(own[loss][0]) for loss in ("hellinger", "mean_absolute_error")]
        values = [f"{value:.4f}" for value in own["R2"].values]
        values += [beside(loss, 0, decimals=4) for loss in losses]  # 0 of the table itself only
        rows.append(("the sample as it is" if name == ORIGINAL else legible(name), values))
    return rows


def _finding(finding: Any, *, public: bool) -> dict[str, Any]:
    fewest = finding.fewest_alone if public else finding.fewest
    if finding.disclosed:
        said = f"{finding.disclosed:,} of them can be worked out exactly: it must not be released."
    elif fewest == inf:
        said = "none of them can be worked out."
    else:
        said = (
            f"none of them can be worked out; at least {fewest:,.0f} values remain possible for"
            f" each, a risk of at most {_at_most(1 / log2(fewest)):.2f} (1/bits)."
        )
    if finding.unproved:
        said += f" It must not be released: {finding.unproved}."
    if finding.lacks:
        said += f" {_not_looked_at(finding)}"
    rows = [
        (label, [_bound(low), _bound(high), _number(count)])
        for label, low, high, count in finding.riskiest
    ]
    return {
        "name": legible(finding.name),
        "said": (
            f"Of the table, and of the tables and totals that something is released of,"
            f" {finding.hidden:,} cells are not published as they are; {said}"
        ),
        "rows": [] if public else rows,
        "left_out": finding.hidden - len(rows),
    }


def _not_looked_at(finding: Any) -> str:
    """What of a release that lacks variables of the table is not known."""
    lacked = " or ".join(legible(name) for name in finding.lacks)
    return (
        f"{legible(finding.name)} has no {lacked}: cells of the table, which are by that too, were"
        " not looked at."
    )


def _at_most(value: float) -> float:
    """The next number of two decimals that is not below a value."""
    return ceil(round(100 * value, 9)) / 100


def _bound(value: float) -> str:
    return "∞" if value == inf else f"{value:,.16g}"


def _number(count: float) -> str:
    return "∞" if count == inf else f"{count:,.0f}"


def _versions(fit: "xr.DataTree") -> dict[str, str]:
    try:
        found = recorded_mapping(fit, "versions")
    except TaciturnError:  # somebody's own model
        return {}
    return {str(name): str(version) for name, version in found.items()}
