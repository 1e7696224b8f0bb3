"""Checks from outside that what the books say is true."""
