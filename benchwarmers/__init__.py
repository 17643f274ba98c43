"""The composition root: settings, urls, the ASGI entry and the commands that run a server. Imports every room; no room imports it."""
