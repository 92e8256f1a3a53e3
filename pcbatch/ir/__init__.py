"""The intermediate representations: both program types, their text form, rules, analyses and interpreters."""
