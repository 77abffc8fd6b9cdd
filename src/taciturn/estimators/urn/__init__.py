"""Urn models: the plug-in Pólya urn and the Bayesian Chinese restaurant."""

from taciturn.estimators.urn.chinese_restaurant import ChineseRestaurant
from taciturn.estimators.urn.polya import PolyaUrn

__all__ = ["ChineseRestaurant", "PolyaUrn"]
