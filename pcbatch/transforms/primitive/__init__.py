"""How an operation on batched programs is bound to JAX: one primitive with rules for vmap, jvp and transpose."""
