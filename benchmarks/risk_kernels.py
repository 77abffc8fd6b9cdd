"""R1 and R2 of 200,000 draws of a 90-cell table: the package against straightforward
vectorised NumPy, in one run.

Run as ``python benchmarks/risk_kernels.py`` from the root of the repository. The NumPy
version is timed on the whole array and, to its advantage, in blocks that fit the cache.
The results are compared before times are printed."""

import time
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.special import xlogy

import taciturn as tc

DRAWS, ROUNDS, BLOCK = 200_000, 5, 2_000


def numpy_risk(F: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R1 and R2 straight from the formulas, over the last axis."""
    N, K = F.sum(-1), F.shape[-1]
    p, q = F / N[:, None], f / f.sum()
    m = np.minimum(p, q)
    r, s = p - m, q - m
    t = r.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        H = -xlogy(p, p).sum(-1)
        left = -(
            xlogy(m, np.where(q > 0, m / q, 1))
            + xlogy(r, np.where(t > 0, r / t, 1))
            + xlogy(s, np.where(q > 0, s / q, 1))
        ).sum(-1)
    D, E = F == 0, f == 0
    either, both = (D | E).sum(-1), (D & E).sum(-1)
    size = (1 + np.log(np.sqrt(N))) / np.sqrt(N)
    spread = 1 - H / np.log(K)
    zeros = D.mean(-1)
    after = np.where(both > 0, zeros ** (either / np.maximum(both, 1)), 0)
    return (
        0.1 * zeros + 0.8 * spread + 0.1 * size,
        0.1 * after + 0.8 * spread * (1 - left / H) + 0.1 * size,
    )


def best_of(work: Callable[[], object]) -> float:
    """Shortest of several rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Time both and print their ratio."""
    religion = tc.load_dataset("area_by_religion")
    sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    fit = tc.LogLinear().fit(sample, population_size=2449, draws=DRAWS // 4, random_seed=1)
    population = fit["posterior_predictive"]["population"]
    F, f = population.values.reshape(-1, population[0, 0].size), sample.values.ravel()

    def ours() -> xr.Dataset:
        return tc.disclosure_risk(population, sample)

    def in_blocks() -> list[tuple[np.ndarray, np.ndarray]]:
        return [numpy_risk(F[i : i + BLOCK], f) for i in range(0, DRAWS, BLOCK)]

    risk, (R1, R2) = ours(), numpy_risk(F, f)
    np.testing.assert_allclose(risk.R1.values.ravel(), R1, rtol=1e-9)
    np.testing.assert_allclose(risk.R2.values.ravel(), R2, rtol=1e-9)
    quick, slow, blocks = best_of(ours), best_of(lambda: numpy_risk(F, f)), best_of(in_blocks)
    print(f"{DRAWS} draws of {len(f)} cells: taciturn {quick:.3f} s")
    print(f"NumPy, whole array {slow:.3f} s, ratio {slow / quick:.1f}")
    print(f"NumPy, in blocks   {blocks:.3f} s, ratio {blocks / quick:.1f}")


if __name__ == "__main__":
    main()
