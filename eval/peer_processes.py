"""Peers of bench_encode.py in processes of their own, with the libraries that they ask for."""

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from recording import ROOT
from transformers import AutoModel

PEERS = ROOT / "eval" / "peers"
ENVIRONMENT = ROOT / "eval" / ".peers-venv"


def peer_python() -> Path:
    """The interpreter of the peers' environment, which is made when it is missing."""
    python = ENVIRONMENT / "bin" / "python"
    wanted = (PEERS / "requirements.txt").read_text(encoding="utf-8")
    made = ENVIRONMENT / "requirements.txt"
    if not made.is_file() or made.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-r"]
        subprocess.run([*install, str(PEERS / "requirements.txt")], check=True)
        made.write_text(wanted, encoding="utf-8")
    return python


def write_peer_models(source: Path, folder: Path) -> dict[str, Path]:
    """Folders with the encoder alone as model.onnx, as peers publish it: ``fp32`` and ``int8``."""
    from onnxruntime.quantization import quantize_dynamic

    folders = {precision: folder / precision for precision in ("fp32", "int8")}
    model = AutoModel.from_pretrained(source).eval()
    given = {
        name: torch.ones((2, 8), dtype=torch.long)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    for place in folders.values():
        place.mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "special_tokens_map.json"):
            if (source / name).is_file():
                shutil.copy(source / name, place / name)
        content = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
        content |= {"model_max_length": 256, "max_length": 256}
        (place / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Tokens(model),
            tuple(given.values()),
            str(folders["fp32"] / "model.onnx"),
            input_names=list(given),
            output_names=["last_hidden_state"],
            dynamic_axes={
                name: {0: "texts", 1: "tokens"} for name in (*given, "last_hidden_state")
            },
            opset_version=17,
            dynamo=False,
        )
    quantize_dynamic(folders["fp32"] / "model.onnx", folders["int8"] / "model.onnx")
    return folders


class _Tokens(torch.nn.Module):
    """The vectors of the tokens alone."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """(B, T, dim)."""
        output: torch.Tensor = self._model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        return output


class PeerProcess:
    """A peer that encodes the same texts each time it is asked to.

    Args:
        system: ``fastembed`` or ``onnxruntime``.
        model: Of `write_peer_models`.
        texts: The texts.
        folder: For what is exchanged.
    """

    def __init__(self, system: str, model: Path, texts: list[str], folder: Path) -> None:
        place = folder / f"{system}-{model.name}.json"
        place.write_text(json.dumps(texts), encoding="utf-8")
        self._vectors = place.with_suffix(".npy")
        self._process = subprocess.Popen(
            [peer_python(), PEERS / "worker.py", system, model, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._orders: Any = self._process.stdin
        self._answers: Any = self._process.stdout

    def seconds(self, save: str = "") -> float:
        """Encodes all texts; the seconds that it took, of loading nothing."""
        print(save, file=self._orders, flush=True)
        return float(self._answers.readline())

    def vectors(self) -> npt.NDArray[np.float32]:
        """The vectors (n, dim)."""
        self.seconds(str(self._vectors))
        self.seconds()  # when this one is done, the file is written
        vectors: npt.NDArray[np.float32] = np.load(self._vectors)
        return vectors

    def close(self) -> None:
        """Ends the process."""
        self._orders.close()
        self._answers.close()
        self._process.wait(timeout=60)
