"""Writes Vega, Vega-Lite and Vega-Embed as one script for the pages of reports.

Usage: vega_bundle.py FILE. It needs vl-convert-python, which has all of them in it.
"""

import sys
from pathlib import Path

import vl_convert


def main() -> None:
    """The script is inlined into HTML, so that nothing in it may end a script element."""
    script = vl_convert.javascript_bundle().replace("\r\n", "\n").replace("\r", "\n")
    versions = (
        f"Vega {vl_convert.get_vega_version()}, "
        f"Vega-Lite {vl_convert.get_vegalite_versions()[-1]}, "
        f"Vega-Embed {vl_convert.get_vega_embed_version()}"
    )
    head = (
        f"/* {versions}: Copyright University of Washington Interactive Data Lab and contributors, "
        "BSD-3-Clause license. With parts of D3: Copyright Mike Bostock, ISC license. */\n"
    )
    for word in ("</script", "<!--"):
        script = script.replace(word, "\\x3c" + word[1:])
    Path(sys.argv[1]).write_text(head + script, encoding="utf-8")


if __name__ == "__main__":
    main()
