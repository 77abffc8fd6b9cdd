"""A census in one call: wall and processor seconds, memory, and how often the intervals
of the same run hold.

Run as ``python benchmarks/census.py``; ``--areas`` and ``--kind`` for others. Areas of
90 cells have from 100 to 3,000 people, of whom one in twenty is sampled; 200 draws of
each. Each estimator runs in a process of its own. Times are those of this machine."""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "studies"))

SHARED = "shared profile"
ALONE = ("urn", "pool of two families", "default")


def main() -> None:
    """Measure each estimator, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=100_000)
    parser.add_argument("--alone", type=int, default=2_000, help="areas that are fitted alone")
    parser.add_argument("--kind", default="margins")
    parser.add_argument("--only", choices=[SHARED, *ALONE])
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measured(given.areas, given.kind, given.only)))
        return
    print("| | areas | seconds | processor ms an area | peak, GB | R2 covered | width |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in (SHARED, *ALONE):
        areas = given.areas if name == SHARED else given.alone
        command = [sys.executable, __file__, "--only", name, "--kind", given.kind]
        out = subprocess.run(
            [*command, "--areas", str(areas)], capture_output=True, text=True, check=True
        )
        found = json.loads(out.stdout.splitlines()[-1])
        shown = name if name == SHARED else f"area by area, {name}"
        print(
            f"| {shown} | {areas:,} | {found['seconds']:.0f} | {found['processor']:.1f} |"
            f" {found['peak']:.2f} | {found['coverage']:.1%} | {found['width']:.3f} |",
            flush=True,
        )


def measured(areas: int, kind: str, name: str) -> dict[str, float]:
    """One estimator on so many areas."""
    from areas import sampled
    from generated_areas import area_populations

    import taciturn as tc

    population = area_populations(kind, areas, 1)
    sample = sampled(population, 0.05, 1)
    sizes = population.sum(["age", "status", "origin"])
    estimators = {
        SHARED: tc.SharedProfile(),
        "urn": tc.ChineseRestaurant(),
        "pool of two families": tc.LinearPool(),
        "default": tc.default_estimator(sample[0]),
    }
    start, before = time.perf_counter(), processor_seconds()
    risk = tc.assess_many(
        sample,
        over="area",
        population_size=sizes,
        estimator=estimators[name],
        draws=200,
        random_seed=1,
        progressbar=False,
    )
    seconds = time.perf_counter() - start
    truth = tc.disclosure_risk(population, sample, dim=["age", "status", "origin"])["R2"]
    low, high = (risk["R2"].sel(quantile=q) for q in (0.025, 0.975))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "seconds": seconds,
        "processor": 1000 * (processor_seconds() - before) / areas,
        "peak": (used[0].ru_maxrss + 2 * used[1].ru_maxrss) / 2**20,
        "coverage": float(((low <= truth) & (truth <= high)).mean()),
        "width": float((high - low).mean()),
    }


def processor_seconds() -> float:
    """Of this process and of its workers, which are ended so that they count."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
