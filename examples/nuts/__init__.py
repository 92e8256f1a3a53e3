"""The No-U-Turn Sampler, batched: `python -m examples.nuts --help`."""
