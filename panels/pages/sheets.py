"""Addresses of lists as files: the one thing that a page's reader fetches from the API itself."""

from __future__ import annotations

from django.urls import get_script_prefix
from django.utils.http import urlencode


def sheet(path: str, **query: str) -> str:
    """The address of a list of `/bench/…` as CSV, under whatever prefix this server is reached."""
    return f"{get_script_prefix()}bench/{path}?{urlencode({**query, 'format': 'csv'})}"
