"""Schedules that were learned: a table from what waits to the block that runs next, or a rule.

encodings.py     states: which blocks have something that waits, and in which order of numbers
policy.py        `Learned`, the policy, in a machine of lanes or of lists, and as a file
summary.py       the visits that it makes, beside those of others
fingerprint.py   what identifies the program that a policy is of

How tables are learned: `pcbatch/learning/`.
"""
