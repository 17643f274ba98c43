"""Tests of the running server through its promised doors, as callers meet it."""
