"""The machine: its state, one block, one trip. All of it is traced by JAX."""
