"""Lanes on several devices."""
