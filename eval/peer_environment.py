"""The environment of the peers that are measured, apart from that of sbertkit."""

import subprocess
import sys
from pathlib import Path

from recording import ROOT

PEERS = ROOT / "eval" / "peers"
_ENVIRONMENT = ROOT / "eval" / ".peers-venv"


def peer_python() -> Path:
    """The interpreter of the peers' environment, which is created if it is missing."""
    python = _ENVIRONMENT / "bin" / "python"
    wanted = (PEERS / "requirements.txt").read_text(encoding="utf-8")
    made = _ENVIRONMENT / "requirements.txt"
    if not made.is_file() or made.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", _ENVIRONMENT], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-r"]
        subprocess.run([*install, str(PEERS / "requirements.txt")], check=True)
        made.write_text(wanted, encoding="utf-8")
    return python
