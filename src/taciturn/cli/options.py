"""What several commands share: exit statuses, names of estimators, kinds of options."""

import re
from pathlib import Path
from typing import Final

import click

__all__ = [
    "EXIT_ERROR",
    "EXIT_INTERRUPTED",
    "EXIT_NOT_CONVERGED",
    "Margin",
    "Model",
    "Weights",
    "is_card",
]

EXIT_ERROR: Final = 1
EXIT_NOT_CONVERGED: Final = 3
EXIT_INTERRUPTED: Final = 130

MODELS: Final = {
    "linear-pool": "LinearPool",
    "dirichlet-log-linear": "DirichletLogLinear",
    "chinese-restaurant": "ChineseRestaurant",
    "latent-class": "LatentClass",
    "log-linear": "LogLinear",
    "polya-urn": "PolyaUrn",
}


class Weights(click.ParamType[tuple[float, float, float]]):
    """Three numbers joined by commas."""

    name = "w1,w2,w3"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float, float]:
        """Read ``0.1,0.8,0.1``."""
        from taciturn.validate import check_weights

        if isinstance(value, tuple):
            return value
        try:
            return check_weights([float(part) for part in re.split(r"\s*,\s*", str(value))])
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


class Margin(click.ParamType[tuple[str, ...]]):
    """Variables, or levels above them, joined by commas; nothing for the grand
    total.
    """

    name = "a,b,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Read ``country,sex``."""
        if isinstance(value, tuple):
            return value
        return tuple(name.strip() for name in str(value).split(",")) if str(value).strip() else ()


class Model(click.ParamType[str]):
    """The name of an estimator, or a file that is a model card."""

    name = "model"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Refuse what is neither."""
        model = str(value)
        if model not in MODELS and not is_card(model):
            self.fail(f"{model!r} is no model card and none of {', '.join(MODELS)}", param, ctx)
        return model


def is_card(model: str) -> bool:
    return model not in MODELS and (model.lower().endswith(".toml") or Path(model).is_file())
