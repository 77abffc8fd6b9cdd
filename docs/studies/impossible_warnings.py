"""How often a summary says that there may be cells where nobody can be, in the samples
of ``impossible_cells.py``.

Run as ``python docs/studies/impossible_warnings.py``, a minute. The result is
``docs/explanation/_impossible_warnings.md``. Seeds are those of the other study."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import FRACTIONS, joined, write
from impossible_cells import KINDS, SEED, Kind, drawn
from kept import Sample

import taciturn as tc

SAMPLES = 40
SAID = "nobody was sampled where"
FRAGMENT = Path(__file__).resolve().parents[1] / "explanation" / "_impossible_warnings.md"


def main() -> None:
    """Draw the samples, and count those of which a summary says it."""
    lines = [joined(["impossible", *(f"n/N = {own:g}" for own in FRACTIONS)])]
    lines.append(joined(["---", *["---:"] * len(FRACTIONS)]))
    for name, kind in KINDS.items():
        said = [
            sum(is_said(kind, Sample(name, fraction, number)) for number in range(SAMPLES))
            for fraction in FRACTIONS
        ]
        lines.append(joined([name.replace("_", " "), *map(str, said)]))
    write(FRAGMENT, f"Of {SAMPLES} samples each:\n\n" + "\n".join(lines) + "\n")


def is_said(kind: Kind, job: Sample) -> bool:
    """Whether the summary of a fit, of any estimator, says it of one sample."""
    population, sample, _ = drawn(kind, job, SEED)
    whole = int(population.sum())
    options = {"draws": 10, "chains": 1, "random_seed": 1, "progressbar": False}
    return SAID in str(tc.summary(tc.LogLinear().fit(sample, population_size=whole, **options)))


if __name__ == "__main__":
    main()
