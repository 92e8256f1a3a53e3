"""Types for a program, the passes that rewrite it, the analyses they decide by, and diagnostics about its types."""
