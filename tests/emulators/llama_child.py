"""Stands in for the child of the local provider: its first line names a server that is elsewhere.

Speaks the child's protocol of `zeroclaw/providers/local/child.py` on its pipes. The address stands
beside the model file, in a file of its name with `.url` after it.
"""

import json
import sys
from pathlib import Path


def main() -> None:
    """Say where, and end with the parent."""
    settings = json.loads(sys.stdin.readline())
    url = Path(f"{settings['model_file']}.url").read_text(encoding="utf-8")
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
