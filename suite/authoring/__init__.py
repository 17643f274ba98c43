"""Making benchmarks: what is asked, how it is graded, and changing either without rewriting what was measured."""
