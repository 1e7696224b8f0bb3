"""Checks from outside that what ledgers and cards say is true."""
