"""Replaces the child process of the local provider: its first line names another server.

Speaks the child's protocol of `zeroclaw/providers/local/child.py` on its pipes. The address is in
a file beside the model file, with `.url` appended to its name.
"""

import json
import sys
from pathlib import Path


def main() -> None:
    """Print the address, and end with the parent."""
    settings = json.loads(sys.stdin.readline())
    url = Path(f"{settings['model_file']}.url").read_text(encoding="utf-8")
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
