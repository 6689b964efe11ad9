"""Opening an index: its encoder, its place, and folders that are none."""

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from index_cases import documents, ids_in, ids_of
from safetensors.torch import load_file, save_file

from sbertkit import BuildOptions, Encoder, Hit, SearchIndex
from sbertkit.errors import DamagedIndex, InputError, InputTypeError, MissingFile, ModelMismatch
from sbertkit.retrieval import merge_policy, opening
from sbertkit.retrieval.build import IndexBuild
from sbertkit.retrieval.manifest import Manifest

CORPUS = documents(20)


@pytest.fixture
def built(tiny_encoder: Encoder, tmp_path: Path) -> Path:
    path = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    return path


def assert_same(hits: Sequence[Hit], expected: Sequence[Hit]) -> None:
    """The same documents in the same order, with the scores of either backend."""
    assert [hit.id for hit in hits] == [hit.id for hit in expected]
    for hit, other in zip(hits, expected, strict=True):
        assert hit.score == pytest.approx(other.score, abs=1e-5)


def build_bare(encoder: Encoder, path: Path) -> None:
    """Builds an index that does not carry its encoder."""
    SearchIndex.build(CORPUS, encoder, path, with_encoder=False).close()


def test_another_encoder_of_the_same_size_is_refused_by_name(
    built: Path, tiny_encoder: Encoder, tiny_copy: Callable[..., Path]
) -> None:
    other = tiny_copy("bert", "other-bert")
    weights = load_file(other / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][7] += 1
    save_file(weights, other / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelMismatch) as caught:
        SearchIndex.open(built, Encoder.load(other, pooling="mean"))
    message = str(caught.value)
    assert tiny_encoder.options.model in message
    assert str(other) in message
    assert "vectors of size" not in message


def test_an_encoder_of_another_size_is_refused_with_both_sizes(
    built: Path, tiny_copy: Callable[..., Path]
) -> None:
    smaller = tiny_models.declare(tiny_copy("bert", "smaller"), "Dense", "Normalize")
    encoder = Encoder.load(smaller)
    assert encoder.dim != 32
    with pytest.raises(ModelMismatch, match=f"vectors of size 32 and {encoder.dim}"):
        SearchIndex.open(built, encoder)


@pytest.mark.parametrize(
    "options", [{"pooling": "cls"}, {"max_tokens": 16}, {"prompts": {"query": "q: "}}]
)
def test_the_same_model_with_other_settings_is_another_encoder(
    built: Path, tiny_bert: Path, options: dict[str, Any]
) -> None:
    encoder = Encoder.load(tiny_bert, **{"pooling": "mean", **options})
    with pytest.raises(ModelMismatch, match="build the index again"):
        SearchIndex.open(built, encoder)


def test_a_copy_of_the_model_elsewhere_is_the_same_model(
    built: Path, tiny_encoder: Encoder, tiny_copy: Callable[..., Path]
) -> None:
    copy = Encoder.load(tiny_copy("bert", "elsewhere"), pooling="mean")
    expected = SearchIndex.open(built, tiny_encoder).search(CORPUS[3][1])
    found = SearchIndex.open(built, copy).search(CORPUS[3][1])
    assert [hit.id for hit in found] == [hit.id for hit in expected]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "cls"},
        {"pooling": "mean", "max_tokens": 20, "normalize": False},
        {"pooling": "max", "prompts": {"query": "ask: ", "document": "tell: "}},
        {"pooling": "first_last", "prompts": {"query": "nur Frage: ü"}},
    ],
)
def test_without_an_encoder_the_one_that_built_it_is_loaded_with_its_settings(
    tiny_bert: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    encoder = Encoder.load(tiny_bert, **options)
    with SearchIndex.build(CORPUS, encoder, tmp_path / "index") as index:
        expected = index.search(CORPUS[3][1])
    with SearchIndex.open(tmp_path / "index") as again:
        assert again.encoder is not encoder
        assert again.encoder.fingerprint == encoder.fingerprint
        assert_same(again.search(CORPUS[3][1]), expected)


def test_a_renamed_or_copied_index_opens(
    built: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    expected = SearchIndex.open(built, tiny_encoder).search(CORPUS[3][1])
    copy = shutil.copytree(built, tmp_path / "sub" / "copy of it")
    moved = built.rename(tmp_path / "moved")
    link = tmp_path / "link"
    link.symlink_to(moved)
    for path in (copy, moved, link):
        assert_same(SearchIndex.open(path).search(CORPUS[3][1]), expected)
        assert SearchIndex.verify_at(path) == ()


def test_a_model_moved_together_with_its_index_is_found(
    tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    model = home / "models" / "bert"
    model.parent.mkdir(parents=True)
    tiny_copy().rename(model)
    encoder = Encoder.load(model, pooling="mean")
    build_bare(encoder, home / "indexes" / "x")
    moved = home.rename(tmp_path / "new home")
    with SearchIndex.open(moved / "indexes" / "x") as index:
        assert index.search(CORPUS[3][1])[0].id == "d3"


def test_a_model_named_relative_to_the_working_folder_is_found_from_elsewhere(
    tiny_copy: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_copy("bert", "model")
    monkeypatch.chdir(tmp_path)
    build_bare(Encoder.load("model", pooling="mean"), Path("index"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert SearchIndex.open("../index").search(CORPUS[3][1])[0].id == "d3"
    assert SearchIndex.open(tmp_path / "index").info().model == "model"


def test_a_model_that_is_gone_is_reported_with_the_index_that_wants_it(
    tiny_copy: Callable[..., Path], tiny_encoder: Encoder, tmp_path: Path
) -> None:
    model = tiny_copy("bert", "model")
    build_bare(Encoder.load(model, pooling="mean"), tmp_path / "index")
    away = model.rename(tmp_path / "away")
    with pytest.raises(InputError, match=r"index cannot be loaded: [^\n]*it was moved"):
        SearchIndex.open(tmp_path / "index")
    assert SearchIndex.open(tmp_path / "index", model=str(away)).search("word")
    assert SearchIndex.open(tmp_path / "index", tiny_encoder).search("word")


def test_a_model_changed_in_its_place_is_refused(
    tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    model = tiny_copy("bert", "model")
    build_bare(Encoder.load(model, pooling="mean"), tmp_path / "index")
    weights = load_file(model / "model.safetensors")
    weights["embeddings.LayerNorm.bias"] += torch.ones(32)
    save_file(weights, model / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelMismatch):
        SearchIndex.open(tmp_path / "index")


def test_an_index_that_bundles_its_encoder_needs_no_model(
    tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    model = tiny_copy("bert", "model")
    encoder = Encoder.load(model, pooling="mean")
    with SearchIndex.build(CORPUS, encoder, tmp_path / "index") as index:
        expected = index.search(CORPUS[3][1])
    shutil.rmtree(model)
    with SearchIndex.open(tmp_path / "index") as index:
        assert_same(index.search(CORPUS[3][1]), expected)
        assert index.encoder.fingerprint == encoder.fingerprint
        # An index built with it bundles it, too.
        SearchIndex.build(CORPUS, index.encoder, tmp_path / "second").close()
    shutil.rmtree(tmp_path / "index")
    with SearchIndex.open(tmp_path / "second") as index:
        assert_same(index.search(CORPUS[3][1]), expected)


def test_a_model_that_is_named_is_the_one_that_is_loaded(
    built: Path, tiny_copy: Callable[..., Path], tiny_bert: Path
) -> None:
    with SearchIndex.open(built, model=str(tiny_bert)) as index:
        assert index.encoder.torch.network is not None
    with pytest.raises(ModelMismatch):
        SearchIndex.open(built, model=str(tiny_models.declare(tiny_copy(), "Dense")))


def test_a_bundled_encoder_of_another_index_is_refused(
    built: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    other = Encoder.load(tiny_bert, pooling="cls")
    SearchIndex.build(CORPUS, other, tmp_path / "other").close()
    (mine,) = (built / "encoder").iterdir()
    (theirs,) = (tmp_path / "other" / "encoder").iterdir()
    shutil.rmtree(mine)
    shutil.copytree(theirs, mine)
    with pytest.raises(DamagedIndex, match=r"encoder/.*SHA-256|encoder/.*bytes"):
        SearchIndex.open(built)
    assert SearchIndex.verify_at(built)


def test_a_rebuild_without_the_encoder_takes_it_away(built: Path, tiny_encoder: Encoder) -> None:
    assert (built / "encoder").is_dir()
    build_bare(tiny_encoder, built)
    assert not (built / "encoder").exists()
    assert SearchIndex.verify_at(built) == ()


def test_without_onnxruntime_the_model_is_loaded(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sbertkit.retrieval.bundled_encoder.find_spec", lambda _: None)
    with SearchIndex.open(built) as index:
        assert index.encoder.torch.network is not None


@pytest.mark.parametrize("command", ["search", "python"])
def test_a_search_loads_neither_torch_nor_transformers(built: Path, command: str) -> None:
    program = {
        "search": "from sbertkit.cli.app import app\n"
        f"app(['search', {str(built)!r}, 'a word'], standalone_mode=False)",
        "python": "import sbertkit\n"
        f"assert sbertkit.SearchIndex.open({str(built)!r}).search('a word')",
    }[command]
    heavy: tuple[str, ...] = (
        "torch",
        "transformers",
        "sentence_transformers",
        "scipy",
        "pandas",
        "pyarrow",
    )
    heavy += ("sbertkit.data.text_breaks",)  # a search divides nothing
    checked = f"{program}\nimport sys\nassert not set({heavy}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", checked], check=True)


@pytest.mark.parametrize("encoder", ["all-MiniLM-L6-v2", 3, b"x", {}])
def test_an_encoder_must_be_one(built: Path, tmp_path: Path, encoder: Any) -> None:
    with pytest.raises(InputTypeError, match=r"expected an Encoder.*Encoder\.load"):
        SearchIndex.open(built, encoder)
    for value in (encoder, lambda: encoder):
        with pytest.raises(InputTypeError, match=r"expected an Encoder.*Encoder\.load"):
            SearchIndex.build(CORPUS, value, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("path", [None, 3, b"index", ["index"]])
def test_a_path_of_another_type_is_a_wrong_type(tiny_encoder: Encoder, path: Any) -> None:
    for use in (SearchIndex.open, SearchIndex.verify_at, SearchIndex.info_at):
        with pytest.raises(InputTypeError, match="expected the path"):
            use(path)
    with pytest.raises(InputTypeError, match="expected the path"):
        SearchIndex.build(CORPUS, tiny_encoder, path)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_no_path_is_refused(tiny_encoder: Encoder, path: str) -> None:
    for use in (SearchIndex.open, SearchIndex.verify_at, SearchIndex.info_at):
        with pytest.raises(InputError, match="expected the path"):
            use(path)
    with pytest.raises(InputError, match="expected the path"):
        SearchIndex.build(CORPUS, tiny_encoder, path)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    for use in (SearchIndex.open, SearchIndex.verify_at, SearchIndex.info_at):
        with pytest.raises(MissingFile, match=r"there is no index at .*none; build one"):
            use(tmp_path / "none")


FOREIGN = {
    "nothing": None,
    "of a web page": b'{"name": "My page", "icons": []}',
    "a list": b"[]",
    "empty": b"",
    "with comments": b"// hello\n{}",
    "no text": bytes(range(256)),
    "deep": b"[" * 200_000,
    "another mark": b'{"mark": "other index", "format": 1}',
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_folder_of_somebody_else_is_no_index(
    tiny_encoder: Encoder, tmp_path: Path, content: bytes | None
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments" / "part-1").mkdir()
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    for use in (SearchIndex.open, SearchIndex.verify_at, SearchIndex.info_at):
        with pytest.raises(InputError, match="is not an sbertkit index"):
            use(tmp_path)
    with pytest.raises(InputError, match="was not changed"):
        SearchIndex.build(CORPUS, tiny_encoder, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_or_an_empty_folder_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd" / "manifest.json").mkdir(parents=True)
    for name in ("file", "empty", "odd"):
        with pytest.raises(InputError, match="is not an sbertkit index"):
            SearchIndex.open(tmp_path / name)


def test_the_description_needs_no_model(tiny_copy: Callable[..., Path], tmp_path: Path) -> None:
    model = tiny_copy("bert", "model")
    encoder = Encoder.load(model, pooling="mean")
    with SearchIndex.build(CORPUS, encoder, tmp_path / "x", recall=0.5) as index:
        expected = index.info()
    shutil.rmtree(model)
    assert SearchIndex.info_at(tmp_path / "x") == expected
    assert expected.recall == 0.5
    assert SearchIndex.verify_at(tmp_path / "x") == ()


def test_a_rebuild_counts_the_generation(tiny_encoder: Encoder, tmp_path: Path) -> None:
    for generation in (1, 2, 3):
        with SearchIndex.build(documents(generation), tiny_encoder, tmp_path / "x") as index:
            assert index.info().generation == generation
            assert len(list((tmp_path / "x" / "segments").iterdir())) == 1


def test_the_corpus_is_remembered_where_it_is_a_file(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpus.txt").write_text("one\ntwo\n")
    monkeypatch.chdir(tmp_path)
    for corpus, expected in (("corpus.txt", str(tmp_path / "corpus.txt")), (CORPUS, None)):
        SearchIndex.build(corpus, tiny_encoder, "x").close()
        assert json.loads((tmp_path / "x" / "manifest.json").read_text())["corpus"] == expected


@pytest.mark.parametrize("recall", [0, -0.1, 1.1, float("nan"), float("inf")])
def test_a_recall_out_of_range_is_refused(recall: float) -> None:
    with pytest.raises(InputError, match="recall must be above 0 and at most 1"):
        IndexBuild(recall=recall)


@pytest.mark.parametrize("recall", ["0.9", None, True])
def test_a_recall_that_is_no_number_is_a_wrong_type(recall: Any) -> None:
    with pytest.raises(InputTypeError, match="recall must be a number"):
        IndexBuild(recall=recall)


def test_arguments_are_checked_before_anything_is_read(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    def never():
        pytest.fail("the corpus was read")
        yield

    for options in (
        {"kind": "tree"},
        {"recall": 2},
        {"kind": "flat", "options": BuildOptions(clusters=3)},
    ):
        with pytest.raises(InputError):
            SearchIndex.build(never(), tiny_encoder, tmp_path / "x", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_pickled_index_opens_its_folder_again(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with SearchIndex.build([("a", "one"), ("b", "two")], tiny_encoder, tmp_path / "i") as index:
        copy = pickle.loads(pickle.dumps(index))
        expected = index.search("two")
    with copy:  # open, though the other one was closed
        assert_same(copy.search("two"), expected)
        assert copy.encoder.fingerprint == tiny_encoder.fingerprint


def test_a_rebuild_while_the_encoder_is_loaded_is_opened_instead(
    built: Path, tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, rebuilt = opening.load_encoder, documents(7, "new")
    seen = []

    def late(root: Path, manifest: Manifest, **more: Any) -> Encoder:
        seen.append(manifest.generation)
        if len(seen) == 1:  # which removes the encoder that is about to be loaded
            SearchIndex.build(rebuilt, tiny_encoder, root).close()
        return load(root, manifest, **more)

    monkeypatch.setattr("sbertkit.retrieval.search_index.load_encoder", late)
    with SearchIndex.open(built) as index:
        assert len(seen) == 2
        assert ids_in(index) == ids_of(rebuilt)


def test_an_index_that_cannot_be_refreshed_can_still_be_searched(
    built: Path, tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_policy, "CHEAP", 0)
    with SearchIndex.open(built, tiny_encoder) as index:
        with SearchIndex.open(built, tiny_encoder) as other:
            other.add(documents(9, "more"))
        newest = max((built / "segments").iterdir(), key=lambda one: one.name)
        (newest / "vectors.npy").write_bytes(b"damaged")
        with pytest.raises(DamagedIndex):
            index.refresh()
        assert len(index.search("a text")) == 10
        assert ids_in(index) == ids_of(CORPUS)


def test_a_copy_of_an_index_opened_for_words_loads_the_same_encoder(
    tiny_encoder: Encoder, tiny_bert: Path, tmp_path: Path
) -> None:
    build_bare(tiny_encoder, tmp_path / "index")
    with SearchIndex.open(
        tmp_path / "index", mode="lexical", model=str(tiny_bert), device="cpu"
    ) as index:
        make, arguments = index.__reduce__()
        assert make.keywords == {  # type: ignore[attr-defined]
            "mode": "lexical",
            "model": str(tiny_bert),
            "device": "cpu",
            "trust_remote_code": False,
        }
        with make(*arguments) as copied:  # type: ignore[operator, misc]
            assert ids_in(copied) == ids_of(CORPUS)
