"""The strategy "local": local static autobatching (section 2 of the paper)."""
