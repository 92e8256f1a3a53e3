"""The strategy "local": local static autobatching (section 2 of Radul et al., MLSys 2020).

It is kept as the paper's second strategy, to compare with and to test against, and is frozen: new features are those of
`strategy="pc"`.
"""
