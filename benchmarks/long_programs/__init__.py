"""Programs of a hundred lines each, as people write them who have never seen pcbatch: `solve` computes one example, and
`examples(n)` draws the arguments of so many."""
