"""Measurements that print tables; never part of the test run."""
