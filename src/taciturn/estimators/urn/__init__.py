"""Urns: Pólya's with its parameter plugged in, the Chinese restaurant with it
fitted.
"""

from taciturn.estimators.urn.chinese_restaurant import ChineseRestaurant
from taciturn.estimators.urn.polya import PolyaUrn

__all__ = ["ChineseRestaurant", "PolyaUrn"]
