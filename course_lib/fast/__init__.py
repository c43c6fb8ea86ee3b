"""The same numbers in less time: everything that is there for speed, and every private operator of torch."""
