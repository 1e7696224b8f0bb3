"""Sphinx configuration."""

import os
import warnings

from privet import __version__

project = "Privet"
copyright = "Privet developers"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = f"Privet {release}"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
napoleon_custom_sections = [("Privacy", "notes_style")]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
# Words in types ("one per feature") are looked up as names, which several classes have.
suppress_warnings = ["ref.python"]

# Figures are drawn without a display; warnings of libraries are not part of an example's output.
os.environ["MPLBACKEND"] = "agg"
warnings.filterwarnings("ignore", category=DeprecationWarning)
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "copyfile_regex": r".*\.rst",
    "capture_repr": (),
}
