"""Sphinx's configuration of the site: ``make docs``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # where extensions are
sys.path.insert(0, str(Path(__file__).parents[1]))

from sims import __version__

project = "sims"
author = "The sims developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "extensions.accessible",
    "extensions.docstrings",
    "extensions.answers",
    "extensions.formulas",
    "extensions.outside",
    "extensions.try_it",
]
exclude_patterns = [
    "examples",
    "learnt",
    "answers/main.md",
    "answers/learnt.md",
    "answers/headline.md",
]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "Heads as kernel estimators"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_extra_path = ["../results/published/paper.pdf", "../results/published/report.html"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "documents.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "default", "monokai"
templates_path = ["templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
# As on code hosts: anchors of headings; a dollar sign beside a space or a digit begins no formula.
myst_heading_anchors = 4
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
myst_dmath_double_inline = True
suppress_warnings = ["myst.strikethrough"]

# Notebooks run in an empty folder; one that fails fails the site.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parents[1] / "build" / "notebooks")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"  # progress

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_attr_annotations = False
