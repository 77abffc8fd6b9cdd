"""Nothing that a result shows of itself, writes or raises holds a value that is not
published.

A class that is new to the package fails `test_every_public_class_is_known` until it is
told here what it holds."""

import atexit
import importlib
import inspect
import pickle
import pkgutil
import shutil
import struct
import tempfile
from pathlib import Path
from secrets import token_hex

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import assume, given, settings, strategies as st

import taciturn as tc
from taciturn import attack, cards, diagnostics, estimators, magnitude, many
from taciturn.attack import free_columns, solver, system
from taciturn.attack.bounds import certificates, component
from taciturn.attack.certificates import document, multipliers, parts as proofs
from taciturn.attack.mechanisms import expected_joint, likelihood
from taciturn.attack.posterior import cells as posteriors, parts, weights
from taciturn.attack.releases import showing
from taciturn.errors import AttackError, TableError
from taciturn.estimators.log_linear import interactions
from taciturn.estimators.urn import quadrature as restaurant_fast
from taciturn.files import RELEASE_ENDINGS
from taciturn.fits import mixtures
from taciturn.information import divergences
from taciturn.magnitude.cells import cells_of
from taciturn.publication.published import Published, published as published_by
from taciturn.suppression import (
    apriori,
    arguments,
    attacks,
    cheapest as cuts,
    deviations,
    hypercubes,
    insiders,
    known as knowns,
    limits,
    open_programs,
    published,
    quantities,
    reach,
    search,
    several_tables,
    shared,
    task,
    witnesses,
)
from taciturn.tables import on_demand as streaming
from taciturn.tables.sources.base import Source

SETTINGS = settings(deadline=None, max_examples=6, derandomize=True)
SLOW = settings(SETTINGS, max_examples=3)
MARGINS = [("a", "b"), ("a",), ("b",), ()]

# Messages of errors are tested below; estimators and rules say what is to be done with
# any table.
FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER)

HOLD_NO_TABLE_BY_KIND = (
    BaseException,
    Warning,
    estimators.Estimator,
    magnitude.Rule,
    attack.Mechanism,
)
HOLD_NO_TABLE = {
    # What an attacker can work out, which is what they are for, and advice.
    tc.release_log.Finding,
    tc.release_log.Likely,
    tc.release_log.Advice,
    # Sizes of areas, which must be public.
    tc.release_log.RecordSwapping,
    # What an estimator believes and how it samples.
    many.SharedProfile,
    estimators.Prior,
    estimators.Parameters,
    # What a prior makes of a shape; no table enters.
    estimators.PriorDraws,
    estimators.SamplerSettings,
    interactions.Interactions,
    mixtures.Maker,
    # How well a sampler did, and what it found of a risk.
    diagnostics.Diagnostics,
    diagnostics.ImportanceDiagnostics,
    diagnostics.PooledDiagnostics,
    tc.fits.Summary,
    # What a protection is to keep, and what is expected of each.
    tc.Constraint,
    tc.decisions.Decision,
    # Cards of fits to public tables.
    cards.Calibration,
    cards.Card,
    cards.CardCheck,
    cards.CardTable,
    cards.Run,
    # What a certificate says, of what follows from a release.
    attack.CheckedCertificate,
    attack.CheckedBound,
    # Types of arguments.
    quantities.ProtectOptions,
    # A function.
    divergences.Divergence,
    tc.perturbation.FlexShare,
    # A sample that a model is fitted to, of which nothing is suppressed.
    estimators.Problem,
    # Abstract: releases of all kinds are below.
    attack.Release,
    # Says nothing.
    component.ContradictionError,
}
# They hold tables or solutions, and print no more than their name and address.
SHOW_NOTHING = {
    attacks.Attacks,
    certificates.Rows,
    document.Bound,
    multipliers.System,
    proofs.Part,
    component.Component,
    cuts.PatternProgram,
    deviations.Completed,
    deviations.DeviationSearch,
    insiders.Insider,
    insiders.Insiders,
    free_columns.Lattice,
    limits.Limits,
    open_programs.OpenPrograms,
    reach.Reach,
    search.Found,
    search.PatternSearch,
    witnesses.Witnesses,
    hypercubes.Hypercubes,
    likelihood.Likelihood,
    expected_joint.Alike,
    expected_joint.ExpectedJoint,
    parts.Part,
    parts.PartPosterior,
    posteriors.CellPosteriors,
    weights.LogWeights,
    solver.Program,
    solver.Solved,
    restaurant_fast.UrnLikelihood,
    streaming.DrawnTables,
    streaming.TablesOnDemand,
    Source,
}


class Case:
    """A true table with distinctive values, the cells to hide, and its decimals."""

    def __init__(self, steps, mask, decimals):
        self.decimals, self.mask = decimals, mask
        self.steps = steps
        self.table = steps / 10.0**decimals if decimals else steps

    def margin(self, names):
        return self.table.sum([dim for dim in self.table.dims if dim not in names])

    def suppression(self, **options):
        return tc.Suppression(self.table, self.mask, decimals=self.decimals, **options)

    def log(self):
        """A log of counts in which a table with suppressed cells was released."""
        labels = {dim: self.mask[dim].values.tolist() for dim in self.mask.dims}
        path = Path(FOLDER) / f"{token_hex(4)}.duckdb"
        log = tc.ReleaseLog(path, variables=labels)
        log.add(tc.Suppression(self.steps, self.mask))
        return log

    def verdict(self):
        return self.log().check(self.steps.sum("a"), progressbar=False)

    def hidden_in_log(self, log):
        hidden = self.steps.values[self.mask.values]
        if isinstance(log, tc.ReleaseLog):
            assert_not_in_bytes(log.path.read_bytes(), hidden, 0)
        return hidden

    def linked(self):
        hidden = {("a",): self.mask.any("b")}
        return tc.LinkedTables(self.table, ["a", "b"], suppressed=hidden, decimals=self.decimals)

    def recoding(self):
        return tc.GlobalRecoding(
            self.table, {"a": {"merged": ["a0", "a1"]}}, decimals=self.decimals
        )

    def rounding(self):
        base = 1e5 / 10**self.decimals
        return tc.Rounding(self.table // base * base, base, method="random", decimals=self.decimals)

    def perturbed(self):
        counts = np.rint(self.table * 10**self.decimals) // 10**5 * 10**5
        return attack.Perturbed(counts, attack.RandomRounding(10**5))

    def pattern(self):
        return tc.suppress(self.table, self.mask, **self.options())

    def cells(self):
        return arguments.checked_cells(self.table, None, self.decimals)

    def shared(self):
        other = self.table.rename(b="c")
        return several_tables.shared_cells({"b": self.table, "c": other}, None, self.decimals)

    def required(self):
        interval = xr.Dataset({"lower": 0 * self.table, "upper": 2 * self.table})
        flags = arguments.checked_flags(self.mask, self.cells(), name="primary")
        return arguments.checked_required(flags, interval, self.cells())

    def instructions(self):
        cells = self.mask.to_series().rename("status").replace({True: "sensitive", False: None})
        rows = cells.reset_index().assign(cost=self.table.values.ravel())
        return apriori.instructions_of(rows, self.cells())

    def task(self):
        cells = self.cells()
        return task.Task(cells, arguments.checked_costs(None, cells), self.required(), self.known())

    def known(self):
        cells = self.cells()
        prices, ranges = arguments.checked_costs(None, cells), (0, float(self.table.max()))
        return arguments.checked_knowledge(ranges, cells, self.required(), prices)

    def records(self):
        """Hidden cells have one record, the others four alike."""
        rows = []
        for (a, b), value in self.table.to_series().items():
            parts = 1 if self.mask.sel(a=a, b=b) else 4
            steps = round(float(value) * 10**self.decimals)
            shares = np.full(parts, steps // parts)
            shares[0] += steps - shares.sum()
            rows += [(a, b, share / 10**self.decimals) for share in shares]
        return pd.DataFrame(rows, columns=["a", "b", "x"])

    def magnitude_cells(self):
        return cells_of(
            tc.tabulate_magnitude(self.records(), ["a", "b"], "x", decimals=self.decimals)
        )

    def protected(self):
        rule = tc.Dominance(1, 0.75)
        return tc.protect_table(self.records(), ["a", "b"], "x", rule, **self.options())

    def options(self):
        search = {"time_limit": 5, "gap": 0.5, "random_seed": 0}
        return {"decimals": self.decimals, "progressbar": False, **search}

    def hidden_cells(self, _):
        return self.table.values[self.mask.values]

    def all_cells(self, _):
        return self.table.values.ravel()

    def hidden_of_linked(self, _):
        return [*self.table.values.ravel(), *self.margin(["a"]).values[self.mask.any("b").values]]

    def merged_cells(self, _):
        return self.table.values[:2].ravel()

    def hidden_of_pattern(self, pattern):
        kept = {names: status != "safe" for names, status in pattern.status.items()}
        return np.concatenate(
            [self.margin(names).values[hidden.values] for names, hidden in kept.items()]
        )


# For each class of results how one is made, and the true values that it must not show.
EXAMPLES = {
    tc.Suppression: (Case.suppression, Case.hidden_cells),
    tc.LinkedTables: (Case.linked, Case.hidden_of_linked),
    tc.GlobalRecoding: (Case.recoding, Case.merged_cells),
    tc.Rounding: (Case.rounding, Case.all_cells),
    attack.Perturbed: (Case.perturbed, Case.all_cells),
    tc.suppression.SuppressionPattern: (Case.pattern, Case.hidden_of_pattern),
    tc.suppression.ProtectedTable: (
        Case.protected,
        lambda case, made: case.hidden_of_pattern(made.pattern),
    ),
    tc.attack.ConstraintRank: (
        lambda case: tc.attack.constraint_rank(case.suppression()),
        Case.hidden_cells,
    ),
    system.LinearSystem: (lambda case: case.linked().system, Case.hidden_of_linked),
    system.Total: (lambda case: case.linked().system.totals[0], Case.hidden_of_linked),
    showing.Shown: (lambda case: case.linked().shown(), Case.hidden_of_linked),
    showing.Grid: (lambda case: case.linked().shown().grids[0], Case.hidden_of_linked),
    published.PublishedCells: (Case.cells, Case.all_cells),
    shared.SharedCells: (Case.shared, Case.all_cells),
    knowns.Known: (Case.known, Case.all_cells),
    apriori.Instructions: (Case.instructions, Case.all_cells),
    task.Required: (Case.required, Case.all_cells),
    task.Task: (Case.task, Case.all_cells),
    Published: (
        lambda case: published_by(case.suppression(), value=None, internal=False),
        Case.hidden_cells,
    ),
    magnitude.Cells: (Case.magnitude_cells, Case.all_cells),
    tc.ReleaseLog: (Case.log, Case.hidden_in_log),
    tc.release_log.Verdict: (Case.verdict, Case.hidden_in_log),
}


@st.composite
def cases(draw, *, most_hidden=6):
    """Cells of seven different digits other than 0, so that none is part of another
    number by chance."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numbers = [int("".join(generator.permutation(list("123456789"))[:7])) for _ in range(12)]
    where = draw(st.sets(st.integers(0, 11), min_size=1, max_size=most_hidden))
    coords = {"a": [f"a{i}" for i in range(3)], "b": [f"b{i}" for i in range(4)]}
    steps = xr.DataArray(np.array(numbers).reshape(3, 4), coords=coords)
    mask = steps.copy(data=np.isin(np.arange(12), list(where)).reshape(3, 4))
    case = Case(steps, mask, draw(st.sampled_from([0, 2])))
    numbers += [
        int(total)
        for names in MARGINS[1:]
        for total in np.ravel(Case(steps, mask, 0).margin(names))
    ]
    texts = list(map(str, numbers))
    assume(not any(one in other for one in texts for other in texts if one is not other))
    return case


def forms(value, decimals):
    """How a value, or the value in steps, may be written."""
    steps = round(float(value) * 10**decimals)
    for number in {float(value), float(steps)}:
        text = f"{number:.{decimals}f}"
        yield from (text, f"{number:,.{decimals}f}", f"{number:_.{decimals}f}", repr(number))
        yield from (f"{number:{style}}" for style in ("e", "g", ".4g"))
        yield from (str(np.array([number]))[1:-1].strip(), np.format_float_scientific(number))


def assert_not_in(text, hidden, decimals):
    for value in hidden:
        for form in forms(value, decimals):
            assert form not in text, f"{form!r} is not published, but is in:\n{text}"


def assert_not_in_bytes(content, hidden, decimals):
    assert_not_in(content.decode("latin-1"), hidden, decimals)
    for value in hidden:
        steps = round(float(value) * 10**decimals)
        for packed in (
            struct.pack("<d", value),
            struct.pack("<d", steps),
            struct.pack("<q", steps),
        ):
            assert packed not in content, f"{value} is in the bytes"


def everything_shown(made):
    yield from (
        repr(made),
        str(made),
        format(made),
        f"{made}",
        f"{made!r}",
        repr([made]),
        repr({"key": (made,)}),
    )
    if hasattr(made, "_repr_html_"):
        yield made._repr_html_()


INSIDE_AND_OUT = ("taciturn.attack.", "taciturn.suppression.", "taciturn.publication.")


def public_classes():
    """What the public folders name; of releases and suppression, which hold tables that
    are not published, the parts inside as well."""
    for found in pkgutil.walk_packages(tc.__path__, "taciturn."):
        if not found.ispkg and not found.name.startswith(INSIDE_AND_OUT):
            continue
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isclass(thing) and thing.__module__.startswith("taciturn."):
                yield thing


def test_every_public_class_is_known():
    known = {*EXAMPLES, *HOLD_NO_TABLE, *SHOW_NOTHING}
    unknown = {
        cls
        for cls in public_classes()
        if cls not in known and not issubclass(cls, HOLD_NO_TABLE_BY_KIND)
    }
    assert not unknown, (
        f"{sorted(cls.__qualname__ for cls in unknown)}: say in tests/test_no_leaks.py how"
        " one is made from a table and what it must not show (EXAMPLES), or, where it can hold no"
        " table, why (HOLD_NO_TABLE)"
    )


def test_classes_that_show_nothing_have_no_text_of_their_own():
    for cls in SHOW_NOTHING:
        assert cls.__repr__ is object.__repr__, cls
        assert cls.__str__ is object.__str__, cls
        assert not hasattr(cls, "_repr_html_"), cls


@pytest.mark.parametrize("cls", EXAMPLES, ids=lambda cls: cls.__name__)
def test_results_do_not_show_what_is_not_published(cls):
    make, hidden_of = EXAMPLES[cls]

    @(
        SLOW
        if cls in (tc.suppression.SuppressionPattern, tc.suppression.ProtectedTable)
        else SETTINGS
    )
    @given(case=cases(most_hidden=3 if cls is tc.suppression.ProtectedTable else 6))
    def holds(case):
        made = make(case)
        assert type(made) is cls
        for text in everything_shown(made):
            assert_not_in(text, hidden_of(case, made), case.decimals)

    holds()


@pytest.mark.parametrize(
    "make", [Case.suppression, Case.linked, Case.recoding], ids=lambda make: make.__name__
)
@SETTINGS
@given(case=cases())
def test_a_system_holds_no_value_that_is_not_published(make, case):
    release = make(case)
    hidden = EXAMPLES[type(release)][1](case, release)
    content = pickle.dumps(release.system)
    if (
        make is not Case.suppression
    ):  # what is left of a total may be the value of the only suppressed cell
        assert_not_in_bytes(content, hidden, case.decimals)
    for total in release.system.totals:
        assert_not_in_bytes(pickle.dumps(total), hidden, case.decimals)


@SETTINGS
@given(case=cases())
def test_what_is_published_is_shown(case):
    shown = case.suppression()._repr_html_()
    for value, hidden in zip(case.table.values.ravel(), case.mask.values.ravel(), strict=True):
        assert (f"<td>{value:.{case.decimals}f}</td>" in shown) is not hidden


@SETTINGS
@given(case=cases())
def test_bounds_and_posteriors_hold_nothing_of_cells_that_are_not_asked_for(case):
    hidden = case.hidden_cells(None)
    bounds = tc.attacker_bounds(case.suppression(), cells=~case.mask, progressbar=False)
    assert_not_in_bytes(pickle.dumps(bounds), hidden, case.decimals)
    totals = tc.attacker_bounds(
        case.linked(), margin="a", cells=~case.mask.any("b"), progressbar=False
    )
    assert_not_in_bytes(pickle.dumps(totals), case.hidden_of_linked(None), case.decimals)


@SLOW
@given(case=cases(most_hidden=3))
def test_what_leaves_the_house_holds_no_suppressed_value(case, tmp_path_factory):
    protected = case.protected()
    hidden = case.hidden_of_pattern(protected.pattern)
    for made in (protected.pattern, protected.pattern.release):
        for text in everything_shown(made):
            assert_not_in(text, hidden, case.decimals)
    folder = tmp_path_factory.mktemp("release")
    for number, made in enumerate((protected, protected.pattern, protected.pattern.release)):
        for ending in RELEASE_ENDINGS:
            tc.write_release(made, folder / f"{number}{ending}")
            content = (folder / f"{number}{ending}").read_bytes()
            assert_not_in_bytes(content, hidden, case.decimals)
        # The pages of Parquet and the parts of Excel are compressed.
        packed = pd.read_parquet(folder / f"{number}.parquet")
        sheet = pd.read_excel(folder / f"{number}.xlsx")
        rows = tc.publication.release_rows(made)
        for leaving in (rows, packed, sheet):
            assert_not_in(leaving.to_csv(), hidden, case.decimals)
            assert_not_in_bytes(pickle.dumps(leaving), hidden, case.decimals)
    assert_not_in_bytes(pickle.dumps(dict(protected.tables)), hidden, case.decimals)


@SETTINGS
@given(case=cases(most_hidden=1), contributor=st.booleans())
def test_errors_of_suppression_name_cells_without_their_values(case, contributor):
    asked = case.mask
    options = {"costs": xr.where(asked, 1.0, np.inf)}
    if contributor:  # four cells protect each other, but not from who knows one of them
        asked = asked.copy(data=np.isin(np.arange(12), [0, 1, 4, 5]).reshape(3, 4))
        options = {"costs": xr.where(asked, 1.0, np.inf), "singletons": asked}
    with pytest.raises(AttackError, match="a=a") as raised:
        tc.suppress(case.table, asked, decimals=case.decimals, progressbar=False, **options)
    error = raised.value
    while error is not None:
        assert_not_in(f"{error} {error!r}", case.table.values[asked.values], case.decimals)
        error = error.__cause__ or error.__context__


@SETTINGS
@given(case=cases())
def test_contradictions_quote_published_totals_only(case):
    case.mask = case.mask.copy(data=np.isin(np.arange(12), [0, 1]).reshape(3, 4))
    left = float(case.table.values[0, :2].sum())
    most = round(0.4 * left, case.decimals)
    for known in ({("a0", "b0"): 2 * left}, {("a0", "b0"): most, ("a0", "b1"): most}):
        with pytest.raises(TableError, match="a=a0") as raised:
            tc.attacker_bounds(case.suppression(totals=["a"]), knowledge=known, progressbar=False)
        assert_not_in(str(raised.value), [*case.hidden_cells(None), left], case.decimals)
    assert "contradicts itself" in str(raised.value)
