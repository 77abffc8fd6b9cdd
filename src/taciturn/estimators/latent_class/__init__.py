"""Latent class model, for large sparse tables."""

from taciturn.estimators.latent_class.estimator import LatentClass

__all__ = ["LatentClass"]
