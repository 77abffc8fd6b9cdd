"""Secondary suppression of generated magnitude tables, beside pytauargus: suppressed
cells, their cost, the least that any pattern costs, seconds and peak memory.

Run as ``python benchmarks/suppression.py --pytauargus PYTHON`` from the root of the
repository, an hour on two cores; PYTHON is that of another environment, in which
pytauargus and pandas are installed. Without it only this package is timed. A row that
is in the CSV is not run again, so the command continues where it was interrupted.
``--tables`` runs some. The result is ``docs/studies/suppression.csv`` and
``docs/explanation/_suppression.md``. Seeds are fixed.

Each run has its own process, whose seconds begin when libraries and records are there,
and whose peak memory, which only Linux tells, includes everything. Both sides must find
the same cells sensitive. The cost of a pattern is the sum of the values of its
secondary cells."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "studies"))

from default_estimator import joined, write
from suppression_surveys import PERCENT, SURVEYS, Survey, key, sensitive

import taciturn as tc

DOCS = Path(__file__).resolve().parents[1] / "docs"
OTHER = Path(__file__).with_name("suppression_pytauargus.py")
LIMITS = (30, 200)  # seconds for this package; the second where not all was proved in the first
KILLED, ATTACKED = 300, 120  # seconds after which a run, or an attack on its result, is ended
OURS = ("taciturn", "taciturn, single contributors")
SHORT = dict(zip(OURS, ("taciturn", "– single"), strict=True))
THEIRS = {"pytauargus MOD": "MOD(1)", "pytauargus OPT, 1 minute": "OPT(1,1)"}
SHORT |= {method: spec.split("(")[0] for method, spec in THEIRS.items()}
COLUMNS = ["table", "cells", "records", "primary", "method", "version", "secondary", "cost"]
COLUMNS += ["bound", "seconds", "memory_mb", "too_narrow", "machine", "remark"]


def main() -> None:
    """Run what is missing, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pytauargus", metavar="PYTHON", help="a Python that has pytauargus")
    parser.add_argument("--tables", nargs="+", help="only tables whose name is one of these")
    parser.add_argument("--again", action="store_true", help="run also what is in the CSV")
    parser.add_argument("--output", type=Path, default=DOCS / "studies" / "suppression.csv")
    parser.add_argument("--fragment", type=Path, default=DOCS / "explanation" / "_suppression.md")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return write_one(*given.one)
    if given.attack:
        return write_attack(given.attack)
    if unknown := set(given.tables or ()) - SURVEYS.keys():
        parser.error(f"no tables {sorted(unknown)}: there are {list(SURVEYS)}")
    rows = pd.read_csv(given.output) if given.output.exists() else pd.DataFrame(columns=COLUMNS)
    for name in given.tables or SURVEYS:
        for method in [*OURS, *(THEIRS if given.pytauargus else ())]:
            same = (rows["table"] == name) & (rows["method"] == method)
            if same.any() and not given.again:
                continue
            print(f"{name}: {method}", end="", file=sys.stderr, flush=True)
            row = measured(name, method, given.pytauargus)
            print(f", {row['seconds']} s, cost {row['cost']}", file=sys.stderr, flush=True)
            rows = pd.concat([rows[~same], pd.DataFrame([row])])[COLUMNS]
            write(given.output, rows.to_csv(index=False))
    write(given.fragment, markdown(rows))
    return None


def measured(name: str, method: str, other: str | None) -> dict[str, Any]:
    """One run in a process of its own, and an attack on its result in another."""
    survey = SURVEYS[name]
    records = survey.records()
    expected = sensitive(survey, records)
    row: dict[str, Any] = {"table": name, "method": method, "records": len(records)}
    row |= {"primary": len(expected), "machine": machine()}
    row["cells"] = sum(
        int(np.prod([records[label].nunique() for label in names], dtype=int))
        for names in survey.margins
    )
    own = [sys.executable, str(Path(__file__).resolve())]
    with tempfile.TemporaryDirectory() as folder:
        if method in THEIRS:
            ask(survey, records, THEIRS[method], Path(folder))
            failed = ended_by([str(other), str(OTHER.resolve())], folder, KILLED)
        else:
            for limit in LIMITS:
                failed = ended_by([*own, "--one", name, method, str(limit)], folder, KILLED)
                if (
                    not failed
                    and not json.loads((Path(folder) / "found.json").read_text())["remark"]
                ):
                    break
        if failed:
            return row | dict.fromkeys(COLUMNS[5:-2]) | {"remark": failed}
        found = json.loads(Path(folder, "found.json").read_text(encoding="utf-8"))
        row |= checked(found, expected)
        if not ended_by([*own, "--attack", name], folder, ATTACKED):
            row["too_narrow"] = json.loads(Path(folder, "attack.json").read_text(encoding="utf-8"))
    return row


def ended_by(command: list[str], folder: str, seconds: float) -> str:
    """Run a command; what ended it before it was done, or nothing."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"ended after {seconds} s"
    said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
    return said[-1].split(": ", 1)[-1] if done.returncode else ""


def checked(found: dict[str, Any], expected: set[tuple[str, ...]]) -> dict[str, Any]:
    """What a run found, as the numbers of a row; its sensitive cells must be those of
    the rule.
    """
    primary = {tuple(cell) for cell in found["primary"]}
    if primary != expected:
        raise SystemExit(f"other sensitive cells: {sorted(primary ^ expected)[:5]} and more")
    remark = found.get("remark", "")
    if found.get("at_odds"):
        remark = f"{found['at_odds']} shared totals suppressed in one table, published in another"
    return {
        "version": found["version"],
        "secondary": found["secondary"],
        "cost": round(found["cost"]),
        "bound": found.get("bound"),
        "seconds": round(found["seconds"], 2),
        "memory_mb": round(found["memory"]),
        "too_narrow": None,
        "remark": remark,
    }


def machine() -> str:
    """Its processor, and how many of its cores there are."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = text.split("model name")[1].split("\n")[0].lstrip("\t: ")
    return f"{os.cpu_count()} cores of {model}"


def ask(survey: Survey, records: pd.DataFrame, method: str, folder: Path) -> None:
    """Write what pytauargus is asked, with a hierarchy file for each variable that has
    levels.
    """
    hierarchies = {}
    for axis, (name, levels) in enumerate(survey.levels.items()):
        if levels:
            label, lines, last = survey.labels(axis), [], [""] * len(levels)
            for i, category in enumerate(label[name]):
                path = [label[level][i] for level in reversed(levels)]
                for depth, group in enumerate(path):
                    if last[depth] != group:
                        lines.append("@" * depth + group)
                last = path
                lines.append("@" * len(levels) + category)
            hierarchies[name] = str(folder / f"{name}.hrc")
            Path(hierarchies[name]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    records.to_csv(folder / "records.csv", index=False)
    asked = {"variables": survey.variables, "tables": survey.tables, "method": method}
    asked |= {"rule": f"P({PERCENT},1)", "hierarchies": hierarchies}
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")


def peak_memory() -> float:
    """Of this process alone, in MB: the peak that getrusage gives is at least that of
    the process which started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def write_one(name: str, method: str, limit: str) -> None:
    """Protect a table and write what was found to ``found.json``."""
    survey = SURVEYS[name]
    records = survey.records()
    libraries = (tc.suppress, tc.magnitude.tabulate_margins, duckdb.__version__)
    assert all(libraries)  # named here, so that they are loaded
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", tc.errors.UnprovedWarning)
        patterns, tables = protected(survey, records, float(limit), alone=method == OURS[1])
    seconds = time.perf_counter() - start
    statuses = {names: status for pattern in patterns for names, status in pattern.status.items()}
    cost, cells = 0.0, {"primary": [], "secondary": []}
    for names, status in statuses.items():
        for at in np.argwhere((status != "safe").values):
            which = status.values[tuple(at)]
            labels = [str(status[n].values[i]) for n, i in zip(names, at, strict=True)]
            cells[which].append(key(survey, names, tuple(labels)))
            cost += float(tables[names]["total"].values[tuple(at)]) * (which == "secondary")
    unproved = max(pattern.n_unproved for pattern in patterns)
    found = {
        "version": tc.__version__,
        "seconds": seconds,
        "memory": peak_memory(),
        "primary": cells["primary"],
        "suppressed": cells["primary"] + cells["secondary"],
        "secondary": len(cells["secondary"]),
        "cost": cost,
        "bound": round(patterns[0].bound, 1),
        "remark": f"{unproved} cells not proved to be protected" if caught else "",
    }
    Path("found.json").write_text(json.dumps(found), encoding="utf-8")


def tabulated(
    survey: Survey, records: pd.DataFrame
) -> tuple[xr.DataArray, dict[tuple[str, ...], xr.Dataset]]:
    """The true table with its levels; and the tables and totals that are released, with
    the interval that was promised for each cell.
    """
    variables, rule = tuple(survey.variables), tc.PPercent(PERCENT)
    levels = {
        name: pd.DataFrame(survey.labels(axis))
        for axis, name in enumerate(variables)
        if survey.levels[name]
    }
    margins = list(dict.fromkeys([variables, *survey.margins]))
    tables = tc.magnitude.tabulate_margins(
        records, variables, "x", margins=margins, hierarchies=levels
    )
    table = tables[variables]["total"]
    released = {}
    for names in survey.margins:
        total, level = tables[names]["total"], tc.magnitude.protection_levels(tables[names], rule)
        released[names] = tables[names][["total", "contributors"]].assign(
            sensitive=tc.sensitive_cells(tables[names], rule)["sensitive"],
            lower=(total - level).clip(min=0),
            upper=total + level,
        )
    return table, released


def protected(
    survey: Survey, records: pd.DataFrame, limit: float, *, alone: bool
) -> tuple[list[tc.suppression.SuppressionPattern], dict[tuple[str, ...], xr.Dataset]]:
    """The steps of `protect_table`, or of `protect_tables` for linked tables, but with
    values as costs, as pytauargus has them, and protection from single contributors
    only if it is asked for.
    """
    table, released = tabulated(survey, records)
    asked: dict[str, dict[str, Any]] = {"primary": {}, "protection": {}, "costs": {}}
    asked["singletons"] = {}
    for number, variables in enumerate(survey.tables):
        own = {n: each for n, each in released.items() if set(n) <= levels_of(survey, variables)}
        name = f"table {number}"
        asked["primary"][name] = {n: each["sensitive"] for n, each in own.items()}
        asked["protection"][name] = {n: each[["lower", "upper"]] for n, each in own.items()}
        asked["costs"][name] = {
            n: each["total"].where(each["contributors"] > 0, other=np.inf)
            for n, each in own.items()
        }
        asked["singletons"][name] = {
            n: (each["contributors"] == 1) & alone for n, each in own.items()
        }
    options: dict[str, Any] = {"time_limit": limit, "random_seed": 1, "progressbar": False}
    if survey.linked:
        tables = {
            f"table {number}": released[tuple(variables)]["total"]
            for number, variables in enumerate(survey.tables)
        }
        linked = {name: list(own) for name, own in asked["primary"].items()}
        found = tc.suppression.suppress_tables(tables, linked=linked, **asked, **options)
        return list(found.values()), released
    only = {argument: by_table["table 0"] for argument, by_table in asked.items()}
    return [tc.suppress(table, linked=survey.margins, **only, **options)], released


def levels_of(survey: Survey, variables: list[str]) -> set[str]:
    """Variables, and the levels above them."""
    return {label for name in variables for label in [name, *survey.levels[name]]}


def write_attack(name: str) -> None:
    """Write to ``attack.json`` how many sensitive cells an attacker can put narrower
    bounds on than promised, when the cells of ``found.json`` are suppressed.
    """
    survey = SURVEYS[name]
    table, released = tabulated(survey, survey.records())
    found = json.loads(Path("found.json").read_text(encoding="utf-8"))
    cells, suppressed = {tuple(cell) for cell in found["suppressed"]}, {}
    for names, each in released.items():
        labels = product(*(each[name].values.tolist() for name in names))
        hidden = [key(survey, names, cell) in cells for cell in labels]
        suppressed[names] = xr.zeros_like(each["total"], dtype=bool)
        suppressed[names].values[...] = np.reshape(hidden, each["total"].shape)
    release = tc.LinkedTables(table, survey.margins, suppressed=suppressed)
    narrow = 0
    for names, each in released.items():
        if each["sensitive"].any():
            bounds = tc.attacker_bounds(
                release, margin=names, cells=each["sensitive"], progressbar=False
            )
            kept = (bounds["lower"] <= each["lower"]) & (bounds["upper"] >= each["upper"])
            narrow += int((each["sensitive"] & ~kept).sum())
    Path("attack.json").write_text(json.dumps(narrow), encoding="utf-8")


def markdown(rows: pd.DataFrame) -> str:
    """A line for each table and method, and below them the remarks."""
    head = ["table", "primary", "method", "secondary", "cost", "least", "s", "MB", "narrow"]
    lines = [joined(head), joined(["---", "---:", "---", *["---:"] * 6])]
    remarks = []
    for name in SURVEYS:
        own = rows[rows["table"] == name].set_index("method")
        shown = [method for method in (*OURS, *THEIRS) if method in own.index]
        for method in shown:
            row = own.loc[method]
            first = [name, number(row["primary"])]
            numbers = [number(row[column], int(column == "seconds")) for column in COLUMNS[6:12]]
            lines.append(
                joined([*(first if method == shown[0] else [""] * 2), SHORT[method], *numbers])
            )
            if isinstance(row["remark"], str) and row["remark"]:
                remarks.append(f"- {name}, {method}: {row['remark']}")
    runs = rows.dropna(subset="version")
    programs = {
        f"{method.split(',')[0].split(' ')[0]} {version}"
        for method, version in zip(runs["method"], runs["version"], strict=True)
    }
    said = f"{', '.join(sorted(programs))}; {', '.join(sorted(set(rows['machine'])))}."
    return "\n".join([said, "", *lines, "", *remarks]) + "\n"


def number(value: Any, digits: int = 0) -> str:
    """A number, or nothing if there is none."""
    return "" if pd.isna(value) else f"{value:,.{digits}f}"


if __name__ == "__main__":
    main()
