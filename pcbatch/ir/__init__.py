"""The intermediate representations: the three forms of programs, their text form, rules, analyses and interpreters."""
