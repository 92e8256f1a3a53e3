"""Programs that use pcbatch on real problems."""
