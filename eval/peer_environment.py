"""The environment of the peers that are measured, apart from that of sbertkit."""

import subprocess
import sys
from pathlib import Path

from recording import ROOT

PEERS = ROOT / "eval" / "peers"
_ENVIRONMENT = ROOT / "eval" / ".peers-venv"


def peer_python(requirements: str = "requirements.txt") -> Path:
    """The interpreter of an environment of peers, which is created if it is missing.

    Args:
        requirements: The file of its requirements, in the folder `PEERS`.
    """
    path = PEERS / requirements
    environment = _ENVIRONMENT
    if path.stem != "requirements":
        environment = environment.with_name(f"{environment.name}-{path.stem}")
    python = environment / "bin" / "python"
    wanted = path.read_text(encoding="utf-8")
    made = environment / "requirements.txt"
    if not made.is_file() or made.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-r"]
        subprocess.run([*install, str(path)], check=True)
        made.write_text(wanted, encoding="utf-8")
    return python
