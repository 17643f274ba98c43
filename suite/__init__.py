"""Is it any good: benchmarks, runs and the registry. The room stands; its furniture comes with the suite."""
