"""The algorithms, one module per family, written against :class:`privet.tables.Cells` only."""
