"""Numbers on the command line end where those of Python do, so that none is too large
for what is done with it."""

import click
import pytest

from taciturn.cli import cli
from taciturn.cli.options import MOST_COUNT
from taciturn.schema import MAX_COUNT

WHOLE = [
    pytest.param(option, id=f"{name} {option.opts[0]}")
    for name, command in cli.commands.items()
    for option in command.params
    if isinstance(option.type, click.types.IntParamType)
]


@pytest.mark.parametrize("option", WHOLE)
@pytest.mark.parametrize("text", [str(2**130), "9" * 5000, "-1", "1.5", "1e3", "nan", ""])
def test_whole_numbers_have_two_ends(option, text):
    with pytest.raises(click.BadParameter) as refused:
        option.type.convert(text, option, None)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("option", WHOLE)
def test_the_ends_are_accepted(option):
    for end in (option.type.min, option.type.max):
        assert option.type.convert(str(end), option, None) == end


def test_there_are_some():
    assert len(WHOLE) >= 15
    assert MOST_COUNT == MAX_COUNT
