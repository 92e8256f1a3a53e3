"""Programs compiled for an H100 on a machine without a GPU: what the host will launch, checked against a record."""
