"""The server's own JSON API under /bench: one module a noun. Views check who and what, the rooms' own functions do the work."""
