"""The client of a running Benchwarmers server: the `bench` command and what it is built on. No Django, nothing of the server's own code."""

__version__ = "0.1.0"
