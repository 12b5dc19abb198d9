"""Speed and accuracy against their targets: ``python -m benchmarks`` prints one table."""
