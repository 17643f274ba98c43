"""Load tools: `python -m bench.run` measures this server beside LiteLLM's proxy, `python -m bench.soak` kills things and counts what is left."""
