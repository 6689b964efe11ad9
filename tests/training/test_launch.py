"""What launchers of several processes leave in the environment, whole, torn and left over."""

from collections.abc import Mapping

import pytest

from sbertkit.errors import InputError
from sbertkit.training.run.distributed import launch

NAMES = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"),
    *("ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_FSDP", "ACCELERATE_USE_MEGATRON_LM"),
)
TORCHRUN = {
    "RANK": "1",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "2",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def put(environment: pytest.MonkeyPatch, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        environment.setenv(name, value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, (0, 1)),
        ({"RANK": "1"}, (0, 1)),  # left over by something else
        ({"RANK": "3", "WORLD_SIZE": "1"}, (0, 1)),
        ({"WORLD_SIZE": ""}, (0, 1)),
        ({"MASTER_ADDR": "node", "MASTER_PORT": "1"}, (0, 1)),
        ({"OMPI_COMM_WORLD_SIZE": "1"}, (0, 1)),
        ({"ACCELERATE_USE_FSDP": "false"}, (0, 1)),
        (TORCHRUN, (1, 2)),
        (TORCHRUN | {"RANK": "0", "LOCAL_RANK": "0"}, (0, 2)),
        (TORCHRUN | {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}, (0, 1)),
    ],
)
def test_the_environment_says_which_process_this_is(
    environment: pytest.MonkeyPatch, values: dict[str, str], expected: tuple[int, int]
) -> None:
    put(environment, values)
    assert launch() == expected
    assert launch().is_main == (expected[0] == 0)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        *(
            ({k: v for k, v in TORCHRUN.items() if k != name}, f"but {name} not set")
            for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
        ),
        ({"LOCAL_RANK": "0"}, "LOCAL_RANK is 0, but RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT"),
        ({"RANK": "abc"}, "RANK must be a whole number, found 'abc'"),
        ({"WORLD_SIZE": "-2"}, "WORLD_SIZE must be a whole number"),
        ({"WORLD_SIZE": "\u00b2"}, "WORLD_SIZE must be a whole number"),
        (TORCHRUN | {"RANK": "2"}, r"RANK must be below WORLD_SIZE \(2\), found 2"),
        ({"OMPI_COMM_WORLD_SIZE": "4"}, "mpirun started several processes"),
        *(
            (TORCHRUN | {f"ACCELERATE_USE_{name}": "true"}, f"ACCELERATE_USE_{name} is set")
            for name in ("DEEPSPEED", "FSDP", "MEGATRON_LM")
        ),
    ],
)
def test_a_torn_environment_is_refused_with_the_variable(
    environment: pytest.MonkeyPatch, values: dict[str, str], reason: str
) -> None:
    put(environment, values)
    with pytest.raises(InputError, match=f"^[^\n]*{reason}[^\n]*$"):
        launch()
