"""A recursive TreeLSTM, written for one tree and trained on minibatches: `python -m examples.treelstm --help`."""
