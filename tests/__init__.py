"""Tests: the rooms' own, the server's as callers meet it, and the house's rules."""
