"""Simulation-based calibration of areas that share a profile."""

import numpy as np

import taciturn as tc
from taciturn.many.shared_profile.chain import Chain
from taciturn.many.shared_profile.estimator import LearnedProfile
from taciturn.many.shared_profile.layout import Layout
from taciturn.risk.table_risk import DEFAULT_WEIGHTS, risk_of_counts

__all__ = ["ranks"]

LAYOUT = Layout({"a": 2, "b": 3}, np.ones(6, dtype=bool))
PRIORS = {
    "nu": tc.Prior("LogNormal", mu=1, sigma=1),
    "interactions": tc.Prior("HalfNormal", sigma=0.5),
    "outliers": tc.Prior("Beta", alpha=0.5, beta=10),
    "outlier_size": tc.Prior("LogNormal", mu=0, sigma=1),
    **{f"spread_{name}": tc.Prior("HalfNormal", sigma=0.5) for name in "ab"},
    **{f"main_{name}": tc.Prior("HalfNormal", sigma=1) for name in "ab"},
    **{f"tilt_{name}": tc.Prior("HalfNormal", sigma=0.5) for name in "ab"},
}
AREAS, DRAWS, THIN = 8, 99, 4


def ranks(seed: int) -> dict[str, int]:
    """Of the parameters, of a cell's share and of the risk of the first area, among 99
    draws given data that were made from them; ties are broken at random."""
    rng = np.random.default_rng(seed)
    priors = tc.SharedProfile(priors=PRIORS).priors_for(LAYOUT)
    truth = {name: float(prior.draw(rng, 1)[0]) for name, prior in priors.items()}
    profile = LAYOUT.profile(rng.standard_normal(2 + 3 + 6), truth)
    sizes = rng.integers(20, 200, AREAS)
    spreads = LAYOUT.members @ (LAYOUT.spreads(truth) * rng.standard_normal(5))
    log_shapes = np.log(truth["nu"]) + truth["power"] * profile + spreads
    shares = [_share(profile, log_shapes, truth, rng) for _ in range(AREAS)]
    samples = [rng.multinomial(max(2, int(0.3 * n)), p) for n, p in zip(sizes, shares, strict=True)]
    population = samples[0] + rng.multinomial(sizes[0] - samples[0].sum(), shares[0])

    chain = Chain(np.array(samples, dtype=float), LAYOUT, priors, rng)
    for _ in range(150):
        chain.sweep()
    chain.end_warm_up()
    rows = []
    for _ in range(DRAWS):
        for _ in range(THIN):
            chain.sweep()
        own = chain.profile
        rows.append({**chain.parameters, "profile": own, "log_shape": chain.log_shapes(own)})
    arrays = {name: np.array([[row[name] for row in rows]]) for name in rows[0]}
    found = {name: int((arrays[name] < truth[name]).sum()) for name in truth}
    first = np.exp(arrays["profile"][0])[:, 0] / np.exp(arrays["profile"][0]).sum(axis=1)
    found["share"] = int((first < np.exp(profile)[0] / np.exp(profile).sum()).sum())
    populations = LearnedProfile.of_arrays(arrays, LAYOUT).populations(DRAWS)
    (drawn,) = populations.draw(samples[0][None], sizes[:1], [rng])
    for name in ("R1", "R2"):
        every = np.vstack([population, drawn])
        risk = risk_of_counts(
            every, samples[0], np.ones(6, dtype=bool), core=1, weights=DEFAULT_WEIGHTS
        )[name]
        ties = int((risk[1:] == risk[0]).sum())
        found[name] = int((risk[1:] < risk[0]).sum()) + int(rng.integers(0, ties + 1))
    return found


def _share(
    profile: np.ndarray, log_shapes: np.ndarray, truth: dict[str, float], rng: np.random.Generator
) -> np.ndarray:
    """Of the cells of an area."""
    tilts = LAYOUT.members @ (LAYOUT.tilts(truth) * rng.standard_normal(5))
    shape = np.exp(log_shapes)
    share = np.exp(profile + tilts) * np.maximum(rng.gamma(shape) / shape, 1e-200)
    outlier = rng.random(6) < truth["outliers"]
    share[outlier] = truth["outlier_size"] * 6 * rng.exponential(size=outlier.sum())
    return share / share.sum()
