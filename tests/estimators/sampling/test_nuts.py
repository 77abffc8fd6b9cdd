"""Sampling by NUTS: an interruption ends it, and its draws are counted."""

import sys
from types import SimpleNamespace

import pytest

from taciturn.estimators.sampling.nuts import _run_nutpie
from taciturn.estimators.settings import SamplerSettings


class Sampler:
    """One that is interrupted; nutpie then returns what there is if it waits itself."""

    cancelled = False

    def wait(self) -> None:
        raise KeyboardInterrupt

    def cancel(self) -> None:
        self.cancelled = True


def test_an_interruption_is_no_order_to_go_on_with_the_draws_there_are(monkeypatch):
    sampler = Sampler()

    def sample(*_, blocking=True, progress_bar, progress_callback, **__):
        assert not progress_bar  # in a notebook a large one of its own, which stays
        progress_callback([SimpleNamespace(finished_draws=draws) for draws in (3, 5)])
        return "the draws there are" if blocking else sampler

    monkeypatch.setitem(sys.modules, "nutpie", SimpleNamespace(sample=sample))
    settings = SamplerSettings(10, 10, 1, 1, False, "nuts")
    reached = []
    with pytest.raises(KeyboardInterrupt):
        _run_nutpie(None, settings, 1, SimpleNamespace(reach=reached.append))
    assert sampler.cancelled
    assert reached == [8]
