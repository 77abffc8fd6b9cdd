"""A fit of a 90-cell table with R2 of its 4,000 draws: without a Markov chain against
NUTS, in one run; then by other estimators that need none. Then mixed Poisson models of
5,000 cells of five variables with 1,000 draws, without a chain.

Run as ``python benchmarks/fast_fit.py`` from the root of the repository. Fits without a
chain are timed after a first one in the same process, so that compiled code is loaded.
NUTS has two times: that of the first fit in the process, which compiles the model, and
that of later ones, which reuse it. Wall time depends on what else the machine is doing;
processor time, in brackets, is that of this process with all its threads.
"""

import statistics
import time
from functools import partial

import numpy as np
import xarray as xr

import taciturn as tc

SIZES, ROUNDS, ROUNDS_OF_NUTS = (2_449, 67_000_000), 15, 3
ROUNDS_LARGE = 5
SAMPLE = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)


def large_sample() -> xr.DataArray:
    """A tenth of 50,000 people in 5,000 cells of five variables, which are independent
    but for log-normal factors.
    """
    generator, shape = np.random.default_rng(3), (10, 10, 5, 5, 2)
    logs = generator.normal(size=shape)
    for axis, size in enumerate(shape):
        logs += generator.normal(size=[size if i == axis else 1 for i in range(len(shape))])
    shares = np.exp(logs) / np.exp(logs).sum()
    counts = generator.multinomial(50_000, shares.ravel()).reshape(shape)
    labels = {f"v{axis}": np.arange(size) for axis, size in enumerate(shape)}
    population = xr.DataArray(counts, labels, list(labels))
    return tc.draw_sample(population, fraction=0.1, random_seed=1)


def fit(
    model: tc.estimators.Estimator,
    size: int,
    method: str,
    seed: int,
    sample: xr.DataArray = SAMPLE,
    draws: int = 1000,
) -> tuple[float, float, float]:
    """Mean R2, and the wall and processor time of the fit and its risk, in seconds;
    `draws` are those of each of four chains.
    """
    wall, processor = time.perf_counter(), time.process_time()
    settings = {"method": method, "draws": draws, "random_seed": seed, "progressbar": False}
    fitted = model.fit(sample, population_size=size, **settings)
    risk = tc.assess(fitted)["risk"].to_dataset()
    return float(risk["R2"].mean()), time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    """Time everything and print a comparison."""
    for model in (tc.DirichletLogLinear(), tc.ChineseRestaurant()):
        _, first, _ = fit(model, SIZES[0], "nuts", 0)
        print(f"{model!r}: the first fit by NUTS takes {first:.1f} s")
        for size in SIZES:
            without, nuts = partial(fit, model, size, "fast"), partial(fit, model, size, "nuts")
            without(0)
            R2, wall, processor = zip(*map(without, range(ROUNDS)), strict=True)
            R2_by_nuts, wall_by_nuts, _ = zip(*map(nuts, range(ROUNDS_OF_NUTS)), strict=True)
            best = min(wall)
            print(
                f"  N = {size:,}: R2 {statistics.mean(R2):.4f}, by NUTS"
                f" {statistics.mean(R2_by_nuts):.4f}"
            )
            print(
                f"    without a chain {best:.3f} s, median {statistics.median(wall):.3f} s", end=" "
            )
            print(f"[{min(processor):.3f} s, median {statistics.median(processor):.3f} s]")
            print(
                f"    NUTS, compiled  {min(wall_by_nuts):.2f} s, ratio"
                f" {min(wall_by_nuts) / best:.1f};",
                end=" ",
            )
            print(f"the first fit, ratio {first / best:.0f}")
    default = tc.default_estimator(SAMPLE)
    others = (tc.LinearPool(), tc.MixedPoisson(), tc.LogLinear(), tc.PolyaUrn())
    for name, model in (("the default", default), *((repr(each), each) for each in others)):
        fit(model, SIZES[0], "fast", 0)
        for size in SIZES:
            times = [fit(model, size, "fast", seed)[1] for seed in range(ROUNDS)]
            print(f"{name}, N = {size:,}: {min(times):.3f} s,", end=" ")
            print(f"median {statistics.median(times):.3f} s")
    sample = large_sample()
    mixings = ("gamma", "inverse Gaussian", "mixture")
    for model in (*(tc.MixedPoisson(mixing=name) for name in mixings), default):
        fit(model, 50_000, "fast", 0, sample, 250)
        times = [fit(model, 50_000, "fast", seed, sample, 250) for seed in range(ROUNDS_LARGE)]
        _, wall, processor = zip(*times, strict=True)
        print(f"{model!r}, {sample.size:,} cells, n = {int(sample.sum()):,}, 1,000 draws:", end=" ")
        print(f"{min(wall):.2f} s, median {statistics.median(wall):.2f} s", end=" ")
        print(f"[{min(processor):.2f} s]")


if __name__ == "__main__":
    main()
