"""Make what the README shows, its picture and the output of its command: ``python
docs/make_readme.py``."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import taciturn as tc

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Write the picture and the output, and print the numbers of the picture."""
    draw_picture()
    paste_output()


def paste_output() -> None:
    """Run the first command of the README and put what it prints into its ``text``
    block."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    command = re.search(r"uv run (taciturn assess .*)", text)
    assert command is not None
    words = [sys.executable, "-c", "from taciturn.cli import main; main()", *command[1].split()[1:]]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    shown = f"```text\n{done.stdout.rstrip()}\n```"
    readme.write_text(
        re.sub(r"```text\n.*?```", lambda _: shown, text, flags=re.S), encoding="utf-8"
    )


def draw_picture() -> None:
    """Fit the sample of the README by four estimators and plot the posterior of R2
    with the true value."""
    sample = tc.read_table(ROOT / "examples" / "area_by_religion_sample.csv")
    estimators = {
        "default": tc.default_estimator(sample),
        "Dirichlet log-linear": tc.DirichletLogLinear(),
        "log-linear, plug-in": tc.LogLinear(),
        "Pólya urn, plug-in": tc.PolyaUrn(),
    }
    fits = {
        name: tc.assess(
            estimator.fit(sample, population_size=2449, random_seed=1, progressbar=False)
        )
        for name, estimator in estimators.items()
    }
    population = tc.load_dataset("area_by_religion")
    truth = float(tc.disclosure_risk(population, sample).R2)
    axes = tc.plot_risk(fits, truth=truth)
    axes.figure.savefig(ROOT / "docs" / "images" / "risk.png", dpi=150)
    print(f"true R2 {truth:.4f}")
    for name, fit in fits.items():
        row = tc.summary(fit).table.loc["R2"]
        print(f"{name}: {row['mean']:.4f} [{row['2.5%']:.4f}, {row['97.5%']:.4f}]")


if __name__ == "__main__":
    main()
