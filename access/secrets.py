"""Secrets at rest: encrypted with the server's first secret, read with any of them."""
