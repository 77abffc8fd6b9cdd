"""Power-scaling by ArviZ and by `taciturn.prior_sensitivity`, beside each other.

Writes `docs/explanation/_arviz_sensitivity.md`, the table in the how-to on checking:

    python docs/studies/arviz_sensitivity.py
"""

from pathlib import Path

import arviz as az
import pandas as pd

import taciturn as tc

OUT = Path(__file__).parents[1] / "explanation" / "_arviz_sensitivity.md"
MODELS = {
    "LinearPool": tc.LinearPool(),
    "DirichletLogLinear": tc.DirichletLogLinear(),
    "ChineseRestaurant": tc.ChineseRestaurant(),
    "LatentClass(departures=False)": tc.LatentClass(departures=False),
}


def both(model: tc.estimators.Estimator, fraction: float) -> pd.DataFrame:
    """Sensitivities of the parameters that both know, one row a parameter."""
    sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=fraction, random_seed=1)
    fit = tc.assess(model.fit(sample, population_size=2449, random_seed=1, progressbar=False))
    ours = tc.prior_sensitivity(fit)
    if ours.index.nlevels > 1:
        ours.index = ["_".join(pair) for pair in ours.index]
    names = [name for name in ours.index if name in fit["posterior"].data_vars]
    theirs = az.psense_summary(fit, var_names=names, round_to=6)
    columns = ["prior", "likelihood", "diagnosis"]
    return ours.loc[names, columns].join(theirs[columns].add_suffix(" (ArviZ)"))


def main() -> None:
    """Write the table."""
    lines = [
        "| $n$ | estimator | parameter | prior | prior, ArviZ | likelihood | likelihood, ArviZ |"
        " same diagnosis |",
        "|--:|---|---|--:|--:|--:|--:|---|",
    ]
    for fraction, size in ((0.1, 245), (0.01, 24)):
        for name, model in MODELS.items():
            for parameter, row in both(model, fraction).iterrows():
                values = " | ".join(
                    f"{row[column]:.3f}"
                    for column in ("prior", "prior (ArviZ)", "likelihood", "likelihood (ArviZ)")
                )
                same = "yes" if row["diagnosis"] == row["diagnosis (ArviZ)"] else "no"
                lines.append(f"| {size} | `{name}` | `{parameter}` | {values} | {same} |")
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
