"""Type inference: every primitive is traced for one lane, to a fixpoint."""
