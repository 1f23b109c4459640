"""The command line of the toolkit's campaigns: see docs/experiments/README.md, or --help."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Parts of the other campaigns are used as they are.
sys.path += [str(HERE.parent / "collective"), str(HERE.parent / "prefetch")]

from toolkit_commands import main  # noqa: E402

if __name__ == "__main__":
    main()
