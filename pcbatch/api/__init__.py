"""The public face: `batch`, `Batched` and the stages of a batched function."""
