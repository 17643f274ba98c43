"""`bench`, and `benchwarmers`: the commands, and what they exit with.

0 done   1 refused or failed, the reason on stderr   2 bad usage   3 no server   130 interrupted
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click

from benchwarmers_client import __version__
from benchwarmers_client.commands import ask, bench, connect, judge, keys, roster, upkeep
from benchwarmers_client.http import NoServer, ServerFailure
from benchwarmers_client.session import Session
from benchwarmers_client.terminal import clean

DONE, FAILED, USAGE, NO_SERVER, INTERRUPTED = 0, 1, 2, 3, 130


class ReaderGone(Exception):
    """Whoever read our output has had enough of it."""


class Commands(click.Group):
    """Lists commands in the order in which one meets them."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGone from None  # click would end with 1, as if something had failed

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}, epilog="Examples and options: bench COMMAND --help"
)
@click.version_option(__version__, prog_name="bench")
@click.option("--url", metavar="URL", help="The server's address; else BENCHWARMERS_URL, else the server on this machine.")
@click.option("--json", "is_json", is_flag=True, help="Print what the server answered, as JSON.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask before what cannot be taken back.")
@click.pass_context
def cli(context: click.Context, url: str | None, is_json: bool, is_sure: bool) -> None:
    """Ask a bench of models, judge their answers, run the bench.

    \b
    bench ask core "Where can this return a stale value?" -f cache.py
    git diff | bench ask core "Review this diff"
    bench verdict <call id> --useful --real "the race in refresh()"

    The key, where one is needed, stands in BENCHWARMERS_KEY. Where another program called bench comes first on the PATH, type benchwarmers.
    """
    session = context.ensure_object(Session)
    session.url, session.is_json, session.is_sure = url, is_json, is_sure
    context.call_on_close(session.close)


for command in (*bench.COMMANDS, *ask.COMMANDS, *judge.COMMANDS, *roster.COMMANDS, *keys.COMMANDS, *upkeep.COMMANDS, *connect.COMMANDS):
    cli.add_command(command)


def main() -> None:
    """Runs one command and exits."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    try:
        code = cli.main(arguments, prog_name="bench", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        click.echo("Nothing was done." if sys.stdin.isatty() else "Interrupted.", err=True)
        return INTERRUPTED if not sys.stdin.isatty() else FAILED
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except NoServer as error:
        click.echo(f"bench: {clean(error)}", err=True)
        return NO_SERVER
    except ServerFailure as error:
        click.echo(f"bench: {clean(error)}", err=True)
        return FAILED
    except (ReaderGone, BrokenPipeError):
        # What is left in the buffer must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    main()
