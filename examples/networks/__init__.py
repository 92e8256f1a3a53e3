"""Networks whose shape depends on the example, each written for one: `python -m examples.networks --help`."""

NAMES = (
    "tree_lstm",
    "nary_tree_lstm",
    "birnn",
    "stack_rnn",
    "mv_rnn",
    "berxit",
    "nested_rnn",
    "drnn",
    "two_types",
    "rae",
    "lattice_lstm",
    "lstm",
    "nasrnn",
    "attention",
    "seq2seq",
    "blockdrop",
    "skipnet",
    "tree_rae",
)
