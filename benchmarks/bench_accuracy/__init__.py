"""How truly benchmark tools measure, ours among them: `python -m benchmarks.bench_accuracy --help`."""
