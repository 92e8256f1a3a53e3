"""What pcbatch's programs take on a GPU: `python -m benchmarks.gpu --help`."""
