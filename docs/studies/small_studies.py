"""Four questions of a few minutes each, answered by ``taciturn.study``: a prior that
says that margins are even, latent classes on two variables that depend strongly on each
other, interactions that are named, and the default for three to five variables with a
Dirichlet member.

Run as ``python docs/studies/small_studies.py``, half an hour on two cores. The results
are ``docs/explanation/_told_even.md``, ``_strong_dependence.md``,
``_named_interactions.md`` and ``_with_a_dirichlet_member.md``. Seeds are fixed."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import HERE, joined, write
from fresh_tables import Table, tables
from generated import generated_population

import taciturn as tc
from taciturn.estimators import Estimator


def main() -> None:
    """Run the studies and write a page of each."""
    studies = {
        "told_even": told_even,
        "strong_dependence": strong_dependence,
        "named_interactions": named_interactions,
        "with_a_dirichlet_member": with_a_dirichlet_member,
    }
    for name, study in studies.items():
        head = ["table", "n/N", "R2", "estimator", "samples", "covers R2", "bias", "RMSE"]
        head += ["width", "interval score", "covers R1", "unconverged"]
        lines = [joined(head), joined(["---", "---:", "---:", "---"] + ["---:"] * 8)]
        page = "\n".join([*lines, *study()]) + "\n"
        write(HERE.parent / "explanation" / f"_{name}.md", page)
        print(page, flush=True)


def told_even() -> list[str]:
    """Area by sex, whose margins are nearly even, and a prior that says so."""
    table = tc.load_dataset("area_by_sex")
    even = {f"margin_{name}": tc.Prior("Dirichlet", a=100) for name in table.dims}
    members = {"gamma": "gamma", "wald": "inverse Gaussian"}
    told = tc.LinearPool(
        {name: tc.MixedPoisson(priors=even, mixing=mixing) for name, mixing in members.items()}
    )
    found = tc.study(table, {"told": told}, fractions=[0.1, 0.05, 0.01], samples=100, random_seed=1)
    return rows("area by sex", found, 100)


def strong_dependence() -> list[str]:
    """Latent classes on two variables."""
    given = {"fractions": [0.05, 0.01], "samples": 8, "draws": 500, "random_seed": 5}
    return [
        line
        for kind in ("smooth", "origin_destination")
        for line in rows(
            kind,
            tc.study(
                generated_population(kind, 50_000, 2027), {"classes": tc.LatentClass()}, **given
            ),
            8,
        )
    ]


def named_interactions() -> list[str]:
    """A table that has all interactions of two of its variables."""
    estimators: Mapping[str, Estimator] = {
        "main effects": tc.MixedPoisson(),
        "interactions": tc.MixedPoisson("a * b + a * c + b * c"),
    }
    given = {"fractions": [0.1, 0.02], "samples": 24, "draws": 500, "random_seed": 7}
    return rows("household", tc.study(made(2029)["household"].population, estimators, **given), 24)


def with_a_dirichlet_member() -> list[str]:
    """The members of the default for three to five variables, and those for two."""
    three = replace(tc.default_estimator(tc.load_dataset("area_by_sex")), nested=None)
    given = {"fractions": [0.1, 0.02], "samples": 12, "draws": 500, "random_seed": 3}
    return [
        line
        for name, table in made(2041).items()
        for line in rows(
            name,
            tc.study(
                table.population,
                {
                    "two": replace(tc.default_estimator(table.population), nested=None),
                    "three": three,
                },
                structural_zeros=table.structural_zeros,
                **given,
            ),
            12,
        )
    ]


def made(seed: int) -> dict[str, Table]:
    """The fresh tables of three and more variables."""
    return {
        name: table for name, table in tables(seed) if name in ("household", "labour", "survey")
    }


def rows(name: str, found: xr.Dataset, samples: int) -> list[str]:
    """A line for each estimator and fraction."""
    lines = []
    for fraction in found["fraction"].values.tolist():
        for estimator in found["estimator"].values.tolist():
            own = found.sel(fraction=fraction, estimator=estimator)
            two = own.sel(measure="R2")
            cells = [name, f"{fraction:g}", f"{float(two.truth):.3f}", estimator, str(samples)]
            cells += [f"{float(two.coverage):.2f}", f"{float(two.bias):+.3f}"]
            cells += [f"{float(two[key]):.3f}" for key in ("rmse", "width", "score")]
            cells += [f"{float(own.sel(measure='R1').coverage):.2f}", str(int(own.unconverged))]
            lines.append(joined(cells))
    return lines


if __name__ == "__main__":
    main()
