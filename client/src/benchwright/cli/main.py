"""`benchwright`: its commands, each loaded when it is called, and what it exits with.

0 done   1 a run failed or was halted, or the server refused   2 bad usage   3 no server   4 no key, or not with this one
10 a gate failed   11 a gate is inconclusive   12 the budget is used up   130 interrupted   141 nobody reads the output
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

import click

from benchwright.cli.session import Exit, Session, shown

DONE, FAILED, USAGE, UNREACHABLE, AUTH, GATE_FAILED, GATE_UNSURE, BUDGET, INTERRUPTED = 0, 1, 2, 3, 4, 10, 11, 12, 130

# Name, module with its command, and what the list of commands says: so that the list costs no import.
COMMANDS = {
    "login": ("account", "Keep a server's address and a token as a profile."),
    "token": ("account", "Personal tokens, by a browser's session."),
    "doctor": ("account", "Look whether what runs need is there."),
    "run": ("run", "Launch runs, watch and read them, do them again."),
    "bench": ("bench", "Make benchmarks, subsets and scorers; correct them."),
    "sweep": ("registry", "Many models by one scorer, under one key."),
    "compare": ("registry", "Compare a run with others, task by task."),
    "secrets": ("account", "Providers' keys for the secrets proxy."),
    "hosts": ("account", "Which hosts sandboxes may reach."),
    "billing": ("account", "Budget, grants and what was spent."),
    "hooks": ("account", "Webhooks."),
    "settings": ("account", "The team's settings."),
}


class ReaderGone(Exception):
    """Whoever read our output has had enough of it."""


class Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"benchwright.cli.{COMMANDS[cmd_name][0]}")
        found: click.Command = getattr(module, cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGone from None  # click would end with 1, as if something had failed


def version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from benchwarmers_client import __version__

        click.echo(f"benchwright {__version__}")
        context.exit()


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=version, help="Print the version.")
@shown
def cli(session: Session) -> None:
    """Measure models and collections of a Benchwarmers server.

    \b
    benchwright run --benchmark bm_… --subset small --model mercury --gate pass_rate=0.90
    benchwright run --replay-from @last --model venus
    benchwright run tasks @last --passed=false

    The token stands in BW_PAT, the address in BW_BASE_URL, or both in a profile: benchwright login. @last is the run launched last.
    """


def main() -> None:
    """Runs one command and exits."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    session = Session(arguments)
    try:
        code = cli.main(arguments, prog_name="benchwright", standalone_mode=False, obj=session)
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except click.exceptions.Exit as end:
        return end.exit_code
    except Exit as end:
        sys.stdout.flush()
        return end.code
    except click.Abort:
        click.echo("Nothing was done." if sys.stdin.isatty() else "Interrupted.", err=True)
        return FAILED if sys.stdin.isatty() else INTERRUPTED
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except (ReaderGone, BrokenPipeError):
        # What is left in the buffer must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        from benchwright.errors import BenchwrightError

        if not isinstance(error, BenchwrightError):
            raise
        return told(error, session.is_debug)
    finally:
        session.close()


def told(error: Exception, is_debug: bool) -> int:
    """Says on stderr what went wrong, and gives the exit code for it."""
    from benchwarmers_client.terminal import clean

    from benchwright import errors
    from benchwright.profiles import BadProfile

    if isinstance(error, errors.APIError):
        title = f"{error.title}: " if error.title and error.title.rstrip(".") not in str(error) else ""
        click.echo(f"benchwright: {clean(title)}{clean(error)}", err=True)
        for one in error.errors[:20]:
            if isinstance(one, dict) and one.get("pointer") and str(one.get("message")) not in str(error):
                click.echo(f"  {clean(one['pointer'])}: {clean(one.get('message'))}", err=True)
        if error.required_scope:
            click.echo(f"  The scope {clean(error.required_scope)} is missing; this token has {clean(', '.join(map(str, error.granted)) or 'none')}.", err=True)
        if is_debug:
            import json

            click.echo(json.dumps(error.body, indent=2, ensure_ascii=True), err=True)
    else:
        click.echo(f"benchwright: {clean(error)}", err=True)
    if isinstance(error, errors.ConnectionFailed):
        return UNREACHABLE
    if isinstance(error, errors.AuthenticationError | errors.PermissionDenied):
        return AUTH
    if isinstance(error, errors.BudgetExceeded):
        return BUDGET
    return USAGE if isinstance(error, BadProfile) else FAILED


if __name__ == "__main__":
    main()
