"""The folder of a run: outputs that are refused, and what a run may be resumed with."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from sbertkit import TrainConfig
from sbertkit.errors import InputError, InputTypeError, StorageError
from sbertkit.training.run.folder import RunFolder
from sbertkit.training.run.metrics_log import RunLog

IDENTITY: dict[str, Any] = {
    "base": "f" * 64,
    "objective": "softmax",
    "data": [{"file": "snli.jsonl", "sha256": "1" * 64}, {"file": "mnli.jsonl", "sha256": "2"}],
    "dev": None,
    "settings": {**TrainConfig(labels={0: "neutral"}).identity(), "features": ["u", "v"]},
    "device": "cpu",
    "environment": {"torch": "2.0", "threads": 4},
}


def changed(*path: str | int, value: Any) -> dict[str, Any]:
    """The identity with one thing in it changed."""
    content: Any = json.loads(json.dumps(IDENTITY))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return dict(content)


def fill(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "weights").write_bytes(b"weights")


def write(folder: RunFolder, *steps: int, best: int | None = None) -> None:
    for step in steps:
        folder.store.write(step, fill, {"at": step}, best)


def damage(folder: RunFolder, step: int) -> None:
    (folder.store.path(step) / "model" / "weights").write_bytes(b"weighty")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A begun run without checkpoints."""
    made = RunFolder(tmp_path / "out")
    made.check(resume=False)
    assert made.begin(IDENTITY, resume=False) is None
    return made


# --- the output


def test_a_new_output_has_its_run_beside_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a" / "out")
    assert folder.output == tmp_path / "a" / "out"
    assert folder.work == tmp_path / "a" / "out.run"
    assert folder.log == folder.work / "log.jsonl"
    assert folder.store.folder == folder.work / "checkpoints"
    assert list(tmp_path.iterdir()) == []  # nothing is written before the run begins


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert RunFolder(tmp_path / "out").output == tmp_path / "out"


def test_a_folder_with_anything_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".hidden").touch()
    with pytest.raises(InputError, match="exists and is not empty"):
        RunFolder(tmp_path / "out")
    assert (tmp_path / "out" / ".hidden").exists()


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(InputError, match="out is a file; expected a new folder"):
        RunFolder(str(tmp_path / "out"))


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_no_path_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="expected the path"):
        RunFolder(path)


@pytest.mark.parametrize("path", [None, 3, b"out"])
def test_another_type_is_refused(path: Any) -> None:
    with pytest.raises(InputTypeError, match="expected the path"):
        RunFolder(path)


def test_the_root_of_all_folders_is_refused() -> None:
    with pytest.raises(InputError, match="not empty"):
        RunFolder("/")


def test_a_link_leads_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folder = RunFolder(tmp_path / "link")
    assert (folder.output, folder.work) == (tmp_path / "real", tmp_path / "real.run")


# --- beginning and resuming


def test_a_begun_run_says_what_it_is(folder: RunFolder) -> None:
    known = json.loads((folder.work / "run.json").read_text(encoding="utf-8"))
    assert known == json.loads(json.dumps(IDENTITY))
    assert folder.store.folder.is_dir()
    assert not folder.output.exists()


def test_to_resume_there_must_be_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out")
    with pytest.raises(InputError, match=r"no unfinished run at .*out\.run; leave out resume"):
        folder.check(resume=True)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_there_is_not_begun_over(folder: RunFolder) -> None:
    with pytest.raises(InputError, match=r"unfinished run is at .*out\.run; continue it"):
        folder.check(resume=False)
    folder.check(resume=True)


def test_what_a_kill_left_before_the_run_was_known_is_no_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out")
    folder.store.folder.mkdir(parents=True)
    folder.check(resume=False)
    with pytest.raises(InputError, match="no unfinished run"):
        folder.check(resume=True)
    folder.begin(IDENTITY, resume=False)
    folder.check(resume=True)


def test_a_run_without_checkpoint_begins_again_and_says_so(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    assert folder.begin(IDENTITY, resume=True) is None
    assert caplog.messages == [
        f"there is no checkpoint of the run at {folder.work}: it begins again at step 0"
    ]


def test_a_run_whose_checkpoints_are_gone_says_how_far_it_had_come(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    log = RunLog(folder.log, 0)
    for step in (1, 20, 31):
        log.add({"step": step, "loss": 0.5})
    write(folder, 30)
    shutil.rmtree(folder.store.folder)
    with folder.log.open("ab") as file:
        file.write(b'{"step": 32, "lo')
    assert folder.begin(IDENTITY, resume=True) is None
    assert caplog.messages == [
        f"there is no checkpoint of the run at {folder.work}, whose log reaches step 31: it begins "
        "again at step 0"
    ]


def test_a_finished_run_is_not_resumed_and_said_to_be_finished(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sbertkit.json").touch()
    with pytest.raises(InputError, match="not empty"):
        RunFolder(tmp_path / "out")
    (tmp_path / "out" / "log.jsonl").touch()
    (tmp_path / "out" / "modules.json").touch()
    with pytest.raises(InputError, match=r"the run at .*out is finished, its model is there"):
        RunFolder(tmp_path / "out")


def test_a_run_is_resumed_from_its_last_checkpoint(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, 10, 20, 30, best=10)
    found = folder.begin(IDENTITY, resume=True)
    assert found is not None
    assert (found.step, found.state) == (30, {"at": 30})
    assert folder.store.steps() == [10, 20, 30]
    assert not caplog.messages


def test_a_run_may_be_moved_and_resumed_there(folder: RunFolder, tmp_path: Path) -> None:
    write(folder, 10)
    (tmp_path / "b").mkdir()
    shutil.move(folder.work, tmp_path / "b" / "new.run")
    moved = RunFolder(tmp_path / "b" / "new")
    moved.check(resume=True)
    found = moved.begin(IDENTITY, resume=True)
    assert found is not None
    assert found.model.is_dir()


def test_leftovers_are_swept_when_a_run_is_resumed(folder: RunFolder) -> None:
    write(folder, 10)
    fill_half = folder.store.staging(20)
    fill_half.mkdir()
    (fill_half / "half").touch()
    folder.begin(IDENTITY, resume=True)
    assert [path.name for path in folder.store.folder.iterdir()] == ["step-00000010"]


def test_of_a_damaged_last_checkpoint_one_warning_is_given_and_the_one_before_is_taken(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, 10, 20)
    damage(folder, 20)
    found = folder.begin(IDENTITY, resume=True)
    assert found is not None
    assert (found.step, found.state) == (10, {"at": 10})
    (warning,) = caplog.messages
    assert "step-00000020/model/weights: does not match its SHA-256" in warning
    assert warning.endswith("continuing from step 10")
    assert folder.store.steps() == [10]


def test_of_several_damaged_checkpoints_one_warning_is_given(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, 10, 20, 30, best=10)
    damage(folder, 20)
    (folder.store.path(30) / "checkpoint.json").unlink()
    found = folder.begin(IDENTITY, resume=True)
    assert found is not None
    assert found.step == 10
    assert len(caplog.messages) == 1


def test_damage_before_the_last_checkpoint_does_no_harm(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, 10, 20)
    damage(folder, 10)
    found = folder.begin(IDENTITY, resume=True)
    assert found is not None
    assert found.step == 20
    assert not caplog.messages


def test_without_a_whole_checkpoint_nothing_is_resumed_and_nothing_lost(folder: RunFolder) -> None:
    write(folder, 10, 20)
    damage(folder, 10)
    damage(folder, 20)
    with pytest.raises(
        InputError, match=r"no checkpoint of the run at .* is complete: .*start a new run"
    ):
        folder.begin(IDENTITY, resume=True)
    assert folder.store.steps() == [10, 20]


# --- other data or settings


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        (changed("settings", "batch_size", value=32), ["batch_size was 64, is 32"]),
        (changed("settings", "max_steps", value=7), ["max_steps was null, is 7"]),
        (changed("settings", "schedule", value="cosine"), ['schedule was "linear", is "cosine"']),
        (changed("settings", "labels", value=None), ["labels was", "is null"]),
        (changed("settings", "labels", "0", value="entailment"), ["labels.0", '"entailment"']),
        (changed("settings", "features", value=["u"]), ['features was ["u", "v"], is ["u"]']),
        (changed("settings", "features", value=["v", "u"]), ["features 1", "features 2"]),
        (changed("settings", "new", value=1), ["new was null, is 1"]),
        (changed("objective", value="contrastive"), ["objective was"]),
        (changed("base", value="0" * 64), ["base was"]),
        (changed("device", value="cuda"), ['device was "cpu", is "cuda"']),
        (changed("dev", value="3" * 64), ["dev was null"]),
        (changed("data", 1, "sha256", value="9"), ['data 2.sha256 was "2", is "9"']),
        (changed("data", 0, "file", value="other.jsonl"), ["data 1.file"]),
        (changed("data", value=IDENTITY["data"][:1]), ["data was"]),
        (changed("data", value=[]), ["data was"]),
    ],
)
def test_what_was_changed_is_named_and_nothing_is_touched(
    folder: RunFolder, identity: dict[str, Any], words: list[str]
) -> None:
    write(folder, 10)
    with pytest.raises(InputError) as caught:
        folder.begin(identity, resume=True)
    message = str(caught.value)
    assert message.startswith(f"the run at {folder.work} cannot be resumed")
    for word in words:
        assert word in message
    assert "\n" not in message
    assert "environment" not in message
    assert folder.begin(IDENTITY, resume=True) is not None


def test_all_changes_are_named_at_once(folder: RunFolder) -> None:
    identity = changed("settings", "seed", value=9)
    identity["objective"] = "contrastive"
    with pytest.raises(InputError, match=r"objective was .*; seed was 1, is 9; give those again"):
        folder.begin(identity, resume=True)


def test_long_values_are_cut_in_the_message(folder: RunFolder) -> None:
    with pytest.raises(InputError) as caught:
        folder.begin(changed("base", value="x" * 5000), resume=True)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "environment", [{"torch": "2.1", "threads": 4}, {"torch": "2.0", "threads": 1}, {}, None]
)
def test_another_environment_is_only_warned_of(
    folder: RunFolder, environment: Any, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, 10)
    found = folder.begin(changed("environment", value=environment), resume=True)
    assert found is not None
    (warning,) = caplog.messages
    assert "weights may differ in their last bits" in warning
    if environment:
        assert "was" in warning


def test_the_same_environment_is_not_warned_of(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, 10)
    with caplog.at_level(logging.DEBUG):
        folder.begin(IDENTITY, resume=True)
    assert not caplog.messages


@pytest.mark.parametrize(
    "content", ["", "{", '{"base": ', "[]", "3", "null", '"text"', "\ufeff{}", "{}"]
)
def test_a_damaged_record_of_the_run_is_said(folder: RunFolder, content: str) -> None:
    write(folder, 10)
    (folder.work / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json|cannot be resumed"):
        folder.begin(IDENTITY, resume=True)
    assert folder.store.steps() == [10]


def test_a_record_of_other_bytes_is_said(folder: RunFolder) -> None:
    (folder.work / "run.json").write_bytes(b'{"base": "\xff\xfe"}')
    with pytest.raises(InputError, match=r"run\.json cannot be read"):
        folder.begin(IDENTITY, resume=True)


# --- outputs that cannot be replaced


def test_the_run_is_in_an_output_that_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    assert RunFolder(output).work == tmp_path / "out.run"
    monkeypatch.chdir(output)
    folder = RunFolder(".")
    assert folder.work == output / "out.run"
    with folder.locked():
        folder.check(resume=False)
        folder.begin(IDENTITY, resume=False)
        write(folder, 10)
    monkeypatch.chdir(tmp_path)
    again = RunFolder("out")  # where it was begun, though the output could be replaced from here
    again.check(resume=True)
    with again.locked():
        found = again.begin(IDENTITY, resume=True)
        assert found is not None
        assert found.step == 10
        again.discard()
    assert list(output.iterdir()) == []


def test_an_output_that_cannot_be_replaced_and_is_not_empty_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter").write_text("precious")
    with pytest.raises(InputError, match="exists and is not empty"):
        RunFolder(".")


def test_a_link_in_the_place_of_the_run_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "out.run").symlink_to("mine")
    with pytest.raises(InputError, match="is no unfinished run"):
        RunFolder(tmp_path / "out").locked().__enter__()
    assert list((tmp_path / "mine").iterdir()) == []


# --- processes, disks, the end


def test_one_process_alone_writes(tmp_path: Path) -> None:
    other = RunFolder(tmp_path / "out", main=False)
    assert other.begin(IDENTITY, resume=False) is None
    assert list(tmp_path.iterdir()) == []
    main = RunFolder(tmp_path / "out")
    main.begin(IDENTITY, resume=False)
    write(main, 10, 20)
    damage(main, 20)
    found = other.begin(IDENTITY, resume=True)
    assert found is not None
    assert found.step == 10
    other.discard()
    assert main.store.steps() == [10, 20]


@pytest.mark.parametrize("name", ["x" * 300, "x" * 254, "file/out"])
def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()  # and of 254 letters the name is too long with .run at its end

    def begin() -> None:
        folder = RunFolder(tmp_path / name)
        with folder.locked():
            folder.check(resume=False)
            folder.begin(IDENTITY, resume=False)

    with pytest.raises(StorageError, match="cannot write"):
        begin()


def test_a_file_in_the_place_of_the_run_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "out.run").write_text("mine")
    folder = RunFolder(tmp_path / "out")
    folder.check(resume=False)
    with pytest.raises(StorageError, match="is a file"):
        folder.begin(IDENTITY, resume=False)
    folder.discard()
    assert (tmp_path / "out.run").read_text() == "mine"


def test_a_finished_run_leaves_nothing_but_the_output(folder: RunFolder) -> None:
    write(folder, 10)
    folder.output.mkdir()
    folder.discard()
    assert list(folder.output.parent.iterdir()) == [folder.output]
    folder.discard()


def test_a_foreign_folder_of_the_name_that_a_run_needs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.run").mkdir()
    (tmp_path / "out.run" / "mine.txt").write_text("precious")
    folder = RunFolder(tmp_path / "out")
    with pytest.raises(InputError, match="is no unfinished run"):
        folder.check(resume=False)
    assert (tmp_path / "out.run" / "mine.txt").read_text() == "precious"


def test_what_others_put_into_the_folder_of_a_run_stays(folder: RunFolder) -> None:
    write(folder, 10)
    folder.log.touch()
    (folder.work / "runs").mkdir()
    (folder.work / "notes.txt").write_text("mine")
    folder.discard()
    assert [path.name for path in folder.work.iterdir()] == ["notes.txt"]


def test_an_output_is_held_by_one_run(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path / "out"), RunFolder(tmp_path / "out")
    with first.locked():
        with (
            pytest.raises(StorageError, match=r"another process is writing .*out: pid \d+ on "),
            second.locked(),
        ):
            pass
        with (
            RunFolder(tmp_path / "other").locked(),
            RunFolder(tmp_path / "out", main=False).locked(),
        ):
            pass
    with second.locked():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_leaves_no_folders_above_its_output(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a" / "b" / "out")

    def fail() -> None:
        with folder.locked():
            assert (tmp_path / "a" / "b").is_dir()
            folder.begin(IDENTITY, resume=False)
            folder.discard()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []
