"""From syntax to blocks of the CFG IR."""
