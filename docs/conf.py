"""How the site is built; `make docs` calls it. Nothing here, and nothing that it makes, needs a network."""

from __future__ import annotations

import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# The notebooks' kernel: without the settings of whoever builds, and without a word about its transport.
profile = HERE / "_build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n', encoding="utf-8")
os.environ["IPYTHONDIR"] = str(profile.parent)
logging.getLogger("traitlets").setLevel(logging.WARNING)

import evenrank  # noqa: E402
from evenrank.extras import EXTRA_OF  # noqa: E402

project = "evenrank"
author = "the evenrank authors"
project_copyright = "the evenrank authors; Apache-2.0"
release = version = evenrank.__version__
language = "en"
smartquotes = False  # two hyphens are an option, not a dash

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "docstrings",
    "mathml",
    "pages",
    "outside",
    "pictures",
]
exclude_patterns = ["_build", "_ext", "_static", "pictures", "Thumbs.db"]
root_doc = "index"
nitpicky = False

# ---------------------------------------------------------------------- Markdown and notebooks
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "html_image"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "force"  # a notebook that stops is an error of the build, never an old output
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "image/svg+xml", 0)]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_remove_prompts = True

# ---------------------------------------------------------------------- the reference
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
autodoc_mock_imports = [name for name in EXTRA_OF if find_spec(name) is None]
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "NotionLike": "NotionLike"}
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_preprocess_types = False
default_role = "code"
toc_object_entries = False

# ---------------------------------------------------------------------- the look
html_theme = "furo"
html_title = "evenrank"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # a page opened from disk may not read its neighbours
html_math_renderer = "mathml"
html_extra_path = ["_build/extra"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b5a8a", "color-brand-content": "#0b5a8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f0", "color-brand-content": "#7cc4f0"},
}
