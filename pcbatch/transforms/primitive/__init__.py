"""The one primitive that binds operations on batched programs to JAX, with rules for vmap, jvp and transpose."""
