"""The suite's paths below /v1: the Benchwright API."""
