"""What tests rely on where they give up the rights of root."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from other_user import NOBODY, public_folder, restricted

_WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1], 'file').write_text('x')"
_READ = "import pathlib, sys; print(pathlib.Path(sys.argv[1]).read_text())"


def outcome(change: Callable[[], None], *code: object) -> subprocess.CompletedProcess[str]:
    command = restricted(change, sys.executable, "-c", *map(str, code))
    return subprocess.run(command, capture_output=True, text=True)


def test_permissions_hold_for_ones_own_files_too(
    tmp_path: Path, obey_permissions: Callable[[], None]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("text")
    assert outcome(obey_permissions, _READ, secret).stdout == "text\n"
    secret.chmod(0)
    assert "PermissionError" in outcome(obey_permissions, _READ, secret).stderr
    assert outcome(obey_permissions, _WRITE, tmp_path).returncode == 0
    (tmp_path / "file").unlink()
    tmp_path.chmod(0o555)
    try:
        assert "PermissionError" in outcome(obey_permissions, _WRITE, tmp_path).stderr
    finally:
        tmp_path.chmod(0o755)


def test_another_user_writes_only_where_all_may(become_other_user: Callable[[], None]) -> None:
    with public_folder() as folder:
        assert "PermissionError" in outcome(become_other_user, _WRITE, folder).stderr
        folder.chmod(0o777)
        assert outcome(become_other_user, _WRITE, folder).returncode == 0
        assert (folder / "file").stat().st_uid == NOBODY
        code = "import sbertkit.cli, os; print(os.getresuid())"
        assert outcome(become_other_user, code).stdout == f"{(NOBODY,) * 3}\n"


def test_a_public_folder_is_removed_whatever_it_holds() -> None:
    with public_folder() as folder:
        (folder / "closed" / "deep").mkdir(parents=True)
        (folder / "link").symlink_to(Path(__file__).parent)
        (folder / "closed").chmod(0)
    assert not folder.exists()
    assert Path(__file__).exists()
