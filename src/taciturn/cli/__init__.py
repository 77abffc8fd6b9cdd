"""The command line: ``taciturn assess SAMPLE.csv --population-size N``.

Heavy libraries are imported inside the commands, so that ``--help`` is quick.
"""

import sys
from collections import Counter

import click

from taciturn import __version__
from taciturn.cli.assess import assess
from taciturn.cli.assess_many import assess_many
from taciturn.cli.attack import attack
from taciturn.cli.cell_key import cell_key
from taciturn.cli.check import check
from taciturn.cli.compare import compare
from taciturn.cli.diagnose import diagnose
from taciturn.cli.options import EXIT_ERROR, Names
from taciturn.cli.perturb import perturb
from taciturn.cli.release_log import release_log
from taciturn.cli.report import report
from taciturn.cli.rules import rules
from taciturn.cli.serve import serve
from taciturn.cli.signals import Interruptions
from taciturn.cli.study import study
from taciturn.cli.summary import summary
from taciturn.cli.suppress import suppress
from taciturn.cli.tabulate import tabulate
from taciturn.cli.text import printable
from taciturn.cli.validate import validate
from taciturn.errors import TaciturnError

__all__ = ["cli", "main"]


class Commands(click.Group):
    """Commands in the order of their use; a list of names is given once, unless it says
    that it may be several times.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse what click takes in silence: of lists given twice the last."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            own = click.Context(command, parent=ctx, info_name=name)
            given = Counter(command.make_parser(own).parse_args(list(rest))[2])
            for option, times in given.items():
                if times > 1 and isinstance(option.type, Names) and not option.multiple:
                    raise click.UsageError(
                        f"{option.opts[0]} was given {times} times: give it all names at once,"
                        " separated by commas",
                        own,
                    )
        return name, command, rest


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="taciturn")
def cli() -> None:
    """Measure how much a table gives away about people, and how sure that is."""


_COMMANDS = (
    *(tabulate, assess, assess_many, summary, compare, diagnose),
    *(perturb, cell_key, suppress, attack, rules),
    *(release_log, check, study, validate, report),
    serve,
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command line; a failure gives a message and an exit status, never a
    traceback.
    """
    interruptions = Interruptions()
    try:
        with interruptions:
            cli(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo(f"taciturn: {interruptions}; no file is left half written", err=True)
        sys.exit(interruptions.status)
    except TaciturnError as error:
        click.echo(f"taciturn: error: {printable(error.at_shell)}", err=True)
        sys.exit(EXIT_ERROR)
    except MemoryError:
        click.echo("taciturn: error: not enough memory for this table; use fewer draws", err=True)
        sys.exit(EXIT_ERROR)
    except OSError as error:  # a summary that goes to a full disk
        click.echo(f"taciturn: error: {printable(error.strerror or str(error))}", err=True)
        sys.exit(EXIT_ERROR)
    except Exception as error:  # the last resort of a command line
        click.echo(
            f"taciturn: internal error, please report it: {type(error).__name__}: {error}", err=True
        )
        sys.exit(EXIT_ERROR)
