"""The attacks of ``benchmarks/attacks.py``, one module per part; each reaches Privet from outside.

A part runs in a process of its own that has the attacked checkout on its path. It uses the command
line and the public Python interface only, so that the same script measures any version. Where a
version's files are changed, the changed file is one that this very version wrote.
"""
