"""Python runs this when it starts, because `tools.mutate` puts this folder on PYTHONPATH."""

from tools.mutants.hook import install

install()
