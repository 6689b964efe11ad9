"""An encoder behind which stands an exported graph; loads neither torch nor transformers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from sbertkit.encoder.backends import Backend
from sbertkit.encoder.batching import Padder
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.exports.manifest import (
    TOKENIZER_BYTES,
    TOKENIZER_FILE,
    GraphEntry,
    read_entry,
)
from sbertkit.encoder.exports.probes import PROBES, probe_vectors
from sbertkit.encoder.exports.runtimes import engines_for, open_engine
from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.prompts import Prompts
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.errors import InputError
from sbertkit.files import read_regular


class GraphSource:
    """Runs a graph; what it is stands in its entry.

    Attributes:
        dim: Size of a vector.
        pooling: Name of the pooling inside.
        normalizes: Whether every vector has unit length.
        device: Always the CPU.
    """

    device = "cpu"

    def __init__(self, entry: GraphEntry, folder: Path, options: LoadOptions) -> None:
        self.dim = entry.dim
        self.pooling = entry.pooling
        self.normalizes = entry.normalizes
        self._entry = entry
        self._folder = folder
        self._precision = "bf16" if options.precision == "bf16" else entry.precision
        self._backend = open_engine(self._engine(options.backend), folder, self._precision)

    def _engine(self, backend: str) -> str:
        """The library to run it; in fp32 the one that opens it sooner, for all are as fast."""
        if backend != "auto":
            return backend
        if self._precision == "fp32":
            return "onnx"
        return (engines_for(self._precision, backend) or ("openvino",))[0]

    def fingerprint(self, _: Encoder) -> str:
        """That of the encoder that was exported."""
        return self._entry.fingerprint

    def precision(self, _: Encoder) -> str:
        """What it computes in."""
        return self._precision

    def check_limit(self, _: Encoder, limit: int) -> None:
        """Refuses another limit than that of the encoder that was exported.

        Raises:
            InputError: Another limit.
        """
        if limit != self._entry.max_tokens:
            raise InputError(
                f"{self._folder} is an exported graph with max_tokens {self._entry.max_tokens}, "
                f"not {limit}; export the model again as it should be"
            )

    def graph_folder(self, _: Encoder) -> Path:
        """Its own."""
        return self._folder

    def backend(self, _: Encoder, texts: int) -> Backend:  # noqa: ARG002  # as `Source` has it
        """The graph's."""
        return self._backend


def load_graph_encoder(options: LoadOptions, *, hashed: bool = False) -> Encoder:
    """The encoder of an exported folder, which has encoded two texts; see `Encoder.load`.

    Args:
        options: The model is the folder.
        hashed: See `read_entry`.

    Raises:
        InputError: The folder is damaged, or asked to be something else than was exported.
        MissingDependency: The library that is to run it is missing.
    """
    folder = Path(options.model)
    entry = read_entry(folder, hashed=hashed)
    _check_asked(options, entry)
    with _consistent(folder):
        tokenizer = Tokenizer(_read_tokenizer(folder, entry))
        if entry.max_tokens is not None and entry.max_tokens <= len(tokenizer.special):
            raise InputError(f"max_tokens {entry.max_tokens} leaves no room for text")
        source = GraphSource(entry, folder, options)
        encoder = Encoder(
            source,
            tokenizer,
            Padder(entry.pad_id, entry.padding_side, tokenizer.special, entry.gives_types),
            options=options,
            prompts=Prompts(**entry.prompts),
            max_tokens=entry.max_tokens,
        )
        probe_vectors(encoder, source.backend(encoder, 2), PROBES[1:3])
    return encoder


def _read_tokenizer(folder: Path, entry: GraphEntry) -> SimpleNamespace:
    """The tokenizer of a folder, with what `Tokenizer` asks of one of the transformers library."""
    from tokenizers import Tokenizer as FastTokenizer

    # Its bytes and not its path, which need not be valid Unicode.
    fast = FastTokenizer.from_buffer(read_regular(folder / TOKENIZER_FILE, limit=TOKENIZER_BYTES))
    for name, token in (("pad_id", entry.pad_id), ("empty_id", entry.empty_id)):
        if fast.id_to_token(token) is None:
            raise InputError(f"{name} {token} is not in the vocabulary of {TOKENIZER_FILE}")
    return SimpleNamespace(
        backend_tokenizer=fast,
        pad_token_id=entry.pad_id,
        eos_token_id=entry.empty_id,
        model_input_names=["token_type_ids"] if entry.gives_types else [],
        truncation_side="left" if entry.cuts_left else "right",
    )


@contextmanager
def _consistent(folder: Path) -> Iterator[None]:
    """Turns what a folder makes the libraries raise, its hashes being right, into one refusal.

    Raises:
        InputError: Its files do not belong together, or are none that the libraries can use.
    """
    try:
        with library_errors("it cannot be used"):
            yield
    except InputError as error:
        raise InputError(f"{folder}: {error}; export the encoder again") from error


def _check_asked(options: LoadOptions, entry: GraphEntry) -> None:
    """Refuses options that ask for another encoder than the one that was exported."""
    asked = {
        "pooling": (options.pooling, (None, entry.pooling)),
        "normalize": (options.normalize, (None, entry.normalizes)),
        "max_tokens": (options.max_tokens, (None, entry.max_tokens)),
        "prompts": (options.prompts, (None, Prompts(**entry.prompts))),
        "backend": (options.backend, ("auto", "onnx", "openvino")),
        "device": (options.device, ("auto", "cpu")),
        "precision": (options.precision, ("fp32", "auto", entry.precision)),
    }
    if entry.precision == "fp32" and options.backend != "onnx":
        asked["precision"] = (options.precision, ("auto", "bf16", "fp32"))
    for name, (value, possible) in asked.items():
        if value not in possible:
            raise InputError(
                f"{options.model} is an exported graph with {name} {possible[-1]!r}, not "
                f"{value!r}; export the model again as it should be"
            )
