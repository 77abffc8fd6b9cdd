"""Specifications of every estimator, each argument in more than one way."""

import numpy as np

import taciturn as tc

LOGNORMAL = tc.Prior("LogNormal", mu=-0.5, sigma=2)
EWENS = {
    "ewens": tc.ChineseRestaurant(0.0),
    "dirichlet": tc.DirichletLogLinear("~ a", {"kappa": LOGNORMAL}),
}

SPECIFICATIONS = [
    tc.LinearPool(),
    tc.LinearPool(EWENS),
    tc.LinearPool(shares={"restaurant": np.float64(0.25), "dirichlet": 0.75}),
    tc.LinearPool(nested={"restaurant": {"kappa": np.float64(1)}}),
    tc.LogLinear(),
    tc.LogLinear("~ area * religion"),
    tc.PolyaUrn(),
    tc.PolyaUrn(theta=2.5),
    tc.PolyaUrn(theta=np.float32(2.5)),
    tc.PolyaUrn(empty_cells=np.int64(12)),
    tc.PolyaUrn(formula="~ area + `mode of travel`"),
    tc.DirichletLogLinear(),
    tc.DirichletLogLinear(
        "~ (a + b)^2", priors={"kappa": LOGNORMAL, "margin_a": tc.Prior("Dirichlet", a=0.5)}
    ),
    tc.MixedPoisson(),
    tc.MixedPoisson("~ a * b", priors={"nu": LOGNORMAL}, mixing="gamma"),
    tc.MixedPoisson(zero_inflated=True),
    tc.LatentClass(),
    tc.LatentClass({"concentration": LOGNORMAL}, departures=False),
    tc.ChineseRestaurant(),
    tc.ChineseRestaurant(discount=-0.5, base="log-linear"),
    tc.ChineseRestaurant(priors={"discount": tc.Prior("Beta", alpha=1, beta=5)}),
    tc.ChineseRestaurant(
        discount=np.float64(0.25), priors={"theta": tc.Prior("Uniform", lower=0, upper=99)}
    ),
]
