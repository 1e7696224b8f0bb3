"""Sphinx configuration."""

from privet import __version__

project = "Privet"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"Privet {release}"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
napoleon_custom_sections = [("Privacy", "notes_style")]
myst_enable_extensions = ["deflist", "dollarmath"]
