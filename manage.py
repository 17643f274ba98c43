#!/usr/bin/env python3
"""Runs the server's commands: `python manage.py serve`, `init`, `signin`, `roster load FILE` …"""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwarmers.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
