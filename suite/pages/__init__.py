"""The suite's pages, below /app beside the bench's: found by walking this folder, and asking `/v1/…` and `/bench/…` through `panels.pages.door`."""
