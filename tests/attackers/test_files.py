"""Suppressed tables as files, and an attacker who has nothing but them and knows the
rule."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from hypothesis import HealthCheck, given, reject, settings, strategies as st

import taciturn as tc
from attackers import outsider
from attackers.outsider import Outsider, read_file
from taciturn.errors import AttackError

RULE = (1, 2)  # counts below 3 are primary, but for 0
BOUNDED = settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def test_the_attacker_has_nothing_of_the_package():
    tree = ast.parse(Path(outsider.__file__).read_text(encoding="utf-8"))
    names = {
        module
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert {name.split(".")[0] for name in names} == {
        *("csv", "itertools", "json", "dataclasses", "numpy", "pandas", "scipy")
    }


def persons(seed, sizes, number):
    """Records of persons; small areas are rare. A region is two areas."""
    generator = np.random.default_rng(seed)
    shares = {name: 2.0 ** -np.arange(size) for name, size in sizes.items()}
    frame = pd.DataFrame(
        {
            name: generator.choice(len(share), number, p=share / share.sum()).astype(str)
            for name, share in shares.items()
        }
    )
    return frame.assign(persons=1)


def protected_counts(frame, dims, **options):
    rule = tc.magnitude.MinimumFrequency(3)
    fixed = {"random_seed": 0, "progressbar": False, "time_limit": 3}
    return tc.protect_table(frame, dims, "persons", rule, **{**fixed, **options})


def cells_where(mask):
    """The cells of a margin as the outsider names them, with their positions."""
    for at in np.argwhere(np.atleast_1d(mask.values)):
        position = tuple(at) if mask.ndim else ()
        labels = zip(mask.dims, position, strict=True)
        yield frozenset((str(d), str(mask[d].values[i])) for d, i in labels), position


def primaries(pattern):
    return {
        labels
        for status in pattern.status.values()
        for labels, _ in cells_where(status == "primary")
    }


def check(found, pattern, *, decimals=0):
    """No primary cell has a narrower range than the audit says, and no suppressed one
    is known exactly; those that a search out of time left over might be."""
    for names, audit in pattern.audit.items():
        for labels, at in cells_where(pattern.status[names] == "primary"):
            least, most = found[labels]
            low, high = (audit[side].values[at] * 10.0**decimals for side in ("lower", "upper"))
            assert least <= np.rint(low)
            assert np.rint(high) <= most
    for labels in found if pattern.complete else primaries(pattern):
        assert found[labels][0] < found[labels][1], f"{set(labels)} is known exactly"


def written(release, folder, ending="csv", **options):
    """The cells in a file, of which each is published or suppressed."""
    path = folder / f"release.{ending}"
    tc.write_release(release, path, **options, overwrite=True)
    cells = read_file(path)
    assert {cell.status for cell in cells} <= {"published", "suppressed"}
    assert all((cell.value is None) == (cell.status == "suppressed") for cell in cells)
    return cells


ENDINGS = st.sampled_from(["csv", "json", "parquet", "xlsx"])


@BOUNDED
@given(
    seed=st.integers(0, 10**6),
    dims=st.sampled_from([{"area": 4, "age": 3}, {"area": 3, "age": 2, "sex": 2}]),
    number=st.integers(20, 80),
    ending=ENDINGS,
)
def test_counts_and_who_knows_the_rule(tmp_path, seed, dims, number, ending):
    frame = persons(seed, dims, number)
    try:
        protected = protected_counts(frame, list(dims), knowledge=RULE)
    except AttackError:
        reject()
    attacker = Outsider(written(protected, tmp_path, ending))
    told = primaries(protected.pattern)
    for knowledge in ({}, {"rule": RULE}, {"rule": RULE, "told": told} if told else {}):
        check(attacker.ranges(**knowledge), protected.pattern)


@BOUNDED
@given(seed=st.integers(0, 10**6), number=st.integers(30, 80), ending=ENDINGS)
def test_counts_of_areas_and_of_regions(tmp_path, seed, number, ending):
    """A hierarchy as two columns: most combinations are empty, and published so."""
    frame = persons(seed, {"area": 4, "age": 2}, number)
    frame.insert(0, "region", frame["area"].map(lambda area: "north" if area < "2" else "south"))
    try:
        protected = protected_counts(frame, ["region", "area", "age"], knowledge=RULE)
    except AttackError:
        reject()
    attacker = Outsider(written(protected, tmp_path, ending))
    check(attacker.ranges(), protected.pattern)
    check(attacker.ranges(RULE), protected.pattern)


@BOUNDED
@given(seed=st.integers(0, 10**6), decimals=st.sampled_from([0, 1]), ending=ENDINGS)
def test_magnitudes(tmp_path, seed, decimals, ending):
    generator = np.random.default_rng(seed)
    frame = persons(seed, {"area": 4, "size": 3}, 40).drop(columns="persons")
    frame["firm"] = generator.integers(0, 20, len(frame))
    frame["sales"] = generator.lognormal(3, 1, len(frame)).round(decimals)
    rules = [tc.PPercent(10), tc.magnitude.MinimumFrequency(3)]
    try:
        protected = tc.protect_table(
            frame,
            ["area", "size"],
            "sales",
            rules,
            contributor="firm",
            decimals=decimals,
            time_limit=3,
            random_seed=0,
            progressbar=False,
        )
    except AttackError:
        reject()
    attacker = Outsider(written(protected, tmp_path, ending), decimals=decimals)
    check(attacker.ranges(), protected.pattern, decimals=decimals)


def linked_cells(pattern, folder, ending):
    """The cells of a file, in which regions are in the column of their areas."""
    for cell in written(pattern, folder, ending):
        labels = {
            ("region" if label in ("north", "south") else name, label)
            for name, label in cell.labels
        }
        yield replace(cell, labels=frozenset(labels))


REGIONS = ("area", {"0": "north", "1": "north", "2": "south"})
LINKED = [
    [("area", "age"), ("region", "age"), "area", "region", "age", ()],
    [("area", "age"), ("area", "sex"), ("age", "sex"), "area", "age", "sex", ()],
    [("area", "age"), ("region", "sex"), "region", ()],
]


@BOUNDED
@given(
    seed=st.integers(0, 10**6),
    linked=st.sampled_from(LINKED),
    number=st.integers(30, 70),
    ending=ENDINGS,
)
def test_linked_tables_and_levels(tmp_path, seed, linked, number, ending):
    frame = persons(seed, {"area": 3, "age": 2, "sex": 2}, number)
    variables = ["area", "age", "sex"] if "sex" in str(linked) else ["area", "age"]
    table = tc.tabulate(frame, variables)
    table = table.reindex(area=["0", "1", "2"], fill_value=0).assign_coords(
        region=("area", ["north", "north", "south"])
    )
    margins = [(names,) if isinstance(names, str) else names for names in linked]
    totals = {names: total_of(table, names) for names in margins}
    primary = {names: (total > 0) & (total < 3) for names, total in totals.items() if names}
    try:
        pattern = tc.suppress(
            table,
            primary,
            linked=linked,
            knowledge=RULE,
            costs={(): xr.DataArray(np.inf)},
            time_limit=3,
            random_seed=0,
            progressbar=False,
        )
    except AttackError:
        reject()
    cells = list(linked_cells(pattern, tmp_path, ending))
    attacker = Outsider(cells, above={"region": REGIONS})
    check(attacker.ranges(), pattern)
    check(attacker.ranges(RULE), pattern)


def total_of(table, names):
    """The totals over some variables; a region's are those of its areas."""
    if "region" in names:
        table = table.groupby("region").sum()
    kept = [dim for dim in table.dims if dim not in names]
    return table.drop_vars("region" if "region" not in names else []).sum(kept).transpose(*names)


def exact(attacker, cells, **knowledge):
    """How many of these cells are known exactly."""
    found = attacker.ranges(**knowledge)
    return sum(found[labels][0] == found[labels][1] for labels in cells)


def test_the_status_of_a_file_gives_no_count_away(tmp_path):
    """With the status of old, who knew the rule knew most counts of 1 and 2."""
    frame = persons(5, {"area": 8, "age": 6}, 400)
    plain = protected_counts(frame, ["area", "age"], time_limit=60)
    tc.write_release(plain, tmp_path / "internal.csv", internal=True, overwrite=True)
    internal = read_file(tmp_path / "internal.csv")
    told = {cell.labels for cell in internal if cell.status == "primary"}
    before = exact(Outsider(internal), told, rule=RULE, told=told)
    after = exact(Outsider(written(plain, tmp_path)), told, rule=RULE)
    protected = protected_counts(frame, ["area", "age"], knowledge=RULE, time_limit=60)
    assert primaries(protected.pattern) == told
    strict = exact(Outsider(written(protected, tmp_path)), told, rule=RULE, told=told)
    assert (len(told), after, strict) == (15, 0, 0)
    assert before >= 12  # of 15: which ones, the cheapest pattern decides
