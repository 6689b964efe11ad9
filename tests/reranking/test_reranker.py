"""The re-ranker against sentence-transformers' CrossEncoder, and what it refuses."""

import logging
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from sentence_transformers import CrossEncoder
from tiny_rerankers import DOCUMENTS, PAIRS, QUERIES, cross_encoder

from sbertkit import Encoder, InputError, InputTypeError, Reranker
from sbertkit.encoder.backends.onnx import OnnxBackend
from sbertkit.encoder.backends.openvino import OpenvinoBackend
from sbertkit.reranking.grouped import grouped_scores
from sbertkit.sealed import seal

KINDS = ("bert", "distilbert", "roberta", "mpnet", "albert", "xlnet", "modernbert")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny cross-encoder."""
    return cross_encoder(tmp_path_factory.mktemp("reranker") / "model")


@pytest.fixture
def reranker(folder: Path) -> Reranker:
    """It, loaded."""
    return Reranker.load(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_library(tmp_path: Path, kind: str) -> None:
    path = cross_encoder(tmp_path / "model", kind)
    expected = CrossEncoder(str(path)).predict(PAIRS)
    found = Reranker.load(path).score(PAIRS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(found) > 1e-3


@pytest.mark.parametrize("limit", [9, 10, 16, 33])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_long_pairs_are_truncated_as_by_the_library_and_counted(
    tmp_path: Path, kind: str, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = cross_encoder(tmp_path / "model", kind, max_length=limit)
    library = CrossEncoder(str(path))
    reranker = Reranker.load(path)
    assert reranker.max_tokens == limit
    swapped = [(two, one) for one, two in PAIRS if two]
    with caplog.at_level(logging.WARNING):
        found = reranker.score_with_report([*PAIRS, *swapped])
    np.testing.assert_allclose(found.scores, library.predict([*PAIRS, *swapped]), atol=1e-5)
    whole = library.tokenizer([*PAIRS, *swapped], truncation=False)["input_ids"]
    lost = [max(0, len(ids) - limit) for ids in whole]
    assert found.report.truncated == tuple(row for row, count in enumerate(lost) if count)
    assert found.report.tokens_lost == sum(lost)
    assert f"pairs were truncated to {limit} tokens" in caplog.text


def test_the_declared_activation_is_applied_and_can_be_left_out(tmp_path: Path) -> None:
    for activation in (torch.nn.Sigmoid(), torch.nn.Identity(), torch.nn.Tanh()):
        path = cross_encoder(tmp_path / type(activation).__name__, activation_fn=activation)
        reranker = Reranker.load(path)
        assert reranker.activation == type(activation).__name__
        expected = CrossEncoder(str(path)).predict(PAIRS)
        np.testing.assert_allclose(reranker.score(PAIRS), expected, atol=1e-5)
        raw = CrossEncoder(str(path)).predict(PAIRS, activation_fn=torch.nn.Identity())
        np.testing.assert_allclose(reranker.score(PAIRS, activated=False), raw, atol=1e-5)


def test_an_activation_that_is_not_known_is_reported_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = cross_encoder(tmp_path / "model")
    settings = path / "config_sentence_transformers.json"
    tiny_models.edit_json(settings, activation_fn="nonsense.Squash")
    with caplog.at_level(logging.WARNING):
        assert Reranker.load(path).activation == "Sigmoid"
    assert "nonsense.Squash" in caplog.text


def test_a_folder_of_an_older_library_and_a_plain_one_are_read(tmp_path: Path) -> None:
    path = cross_encoder(tmp_path / "model")
    expected = CrossEncoder(str(path)).predict(PAIRS, activation_fn=torch.nn.Identity())
    for name in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (path / name).unlink()
    np.testing.assert_allclose(
        Reranker.load(path).score(PAIRS, activated=False), expected, atol=1e-5
    )
    for changes in (
        {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
    ):
        tiny_models.edit_json(path / "config.json", **changes)
        np.testing.assert_allclose(Reranker.load(path).score(PAIRS), expected, atol=1e-5)


def test_the_default_prompt_goes_before_the_query(tmp_path: Path) -> None:
    path = cross_encoder(
        tmp_path / "model", prompts={"web": "find: ", "code": "look: "}, default_prompt_name="web"
    )
    expected = CrossEncoder(str(path)).predict(PAIRS)
    np.testing.assert_allclose(Reranker.load(path).score(PAIRS), expected, atol=1e-5)
    bare = CrossEncoder(str(path)).predict(PAIRS, prompt="")
    assert not np.allclose(expected, bare, atol=1e-4)


def test_the_modules_of_an_encoder_with_a_dense_one_for_scores_are_read(tmp_path: Path) -> None:
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(3)
    plain = tiny_models.bert(tmp_path / "plain")
    modules = [
        Transformer(str(plain)),
        Pooling(tiny_models.HIDDEN, "cls"),
        Dense(
            tiny_models.HIDDEN,
            1,
            activation_function=torch.nn.Identity(),
            module_output_name="scores",
        ),
    ]
    library = CrossEncoder(modules=modules)
    library.save_pretrained(str(tmp_path / "model"))
    reranker = Reranker.load(tmp_path / "model")
    np.testing.assert_allclose(reranker.score(PAIRS), library.predict(PAIRS), atol=1e-5)


def test_documents_are_ranked_by_score_and_equal_ones_in_their_order(reranker: Reranker) -> None:
    documents = [*DOCUMENTS, DOCUMENTS[1], DOCUMENTS[0]]
    scores = reranker.score([(QUERIES[0], one) for one in documents])
    ranked = reranker.rank(QUERIES[0], documents)
    assert sorted(one.place for one in ranked) == list(range(len(documents)))
    assert [one.score for one in ranked] == sorted(scores.tolist(), reverse=True)
    places = [one.place for one in ranked]
    assert places.index(0) < places.index(6)
    assert places.index(1) < places.index(5)
    assert reranker.rank(QUERIES[0], documents, 2) == ranked[:2]
    assert reranker.rank(QUERIES[0], []) == []
    assert reranker.rank(QUERIES[0], iter(documents)) == ranked
    with pytest.raises(InputTypeError, match="found a bare string"):
        reranker.rank(QUERIES[0], "a document")
    with pytest.raises(InputTypeError, match="rank takes a list of documents, found NoneType"):
        reranker.rank(QUERIES[0], None)  # type: ignore[arg-type]


def test_scores_that_a_sigmoid_makes_equal_still_rank(tmp_path: Path) -> None:
    path = cross_encoder(tmp_path / "model")
    reranker = Reranker.load(path)
    raw = reranker.score(PAIRS, activated=False)
    head = reranker._runtime.model.network.transformer.classifier
    head.weight.data *= 1e4
    head.bias.data += 1e4
    reranker._runtime.model.weights_changed()
    best = reranker.rank(QUERIES[0], DOCUMENTS)
    assert {one.score for one in best} == {1.0}
    order = np.argsort(-raw[: len(DOCUMENTS)], kind="stable")
    assert [one.place for one in best] == order.tolist()


def test_near_scores_stay_apart_in_bf16(folder: Path) -> None:
    exact = Reranker.load(folder).score(PAIRS, activated=False)
    half = Reranker.load(folder, precision="bf16").score(PAIRS, activated=False)
    np.testing.assert_allclose(half, exact, atol=0.1)
    as_bf16 = torch.from_numpy(half).to(torch.bfloat16).float().numpy()
    assert (half != as_bf16).any()


def test_rows_that_are_no_pairs_are_refused_by_number(reranker: Reranker) -> None:
    good = ("query", "document")
    for bad, reason in (
        ("text", "row 1: expected a pair of two strings.*found str"),
        (("one",), "row 1: .*found 1"),
        (("a", "b", "c"), "row 1: .*found 3"),
        (("query", None), "row 1: expected a string, found NoneType"),
        ((3, "document"), "row 1: expected a string, found int"),
    ):
        with pytest.raises(InputTypeError, match=reason):
            reranker.score([good, bad])  # type: ignore[list-item]
    with pytest.raises(InputError, match="row 1: the query is blank"):
        reranker.score([good, (" \n", "document")])
    with pytest.raises(InputTypeError, match="expected an iterable of pairs"):
        reranker.score(3)  # type: ignore[arg-type]
    assert reranker.score([]).shape == (0,)
    assert reranker.score(iter([good])).shape == (1,)


def test_blank_and_damaged_documents_are_scored_and_reported(reranker: Reranker) -> None:
    scored = reranker.score_with_report(
        [("q", " "), ("q", ""), ("q", "a\ud800"), ("q\ud800", "b\ud800")]
    )
    assert scored.report.blank == (0, 1)
    assert scored.report.repaired == (2, 3)
    assert scored.scores[0] == scored.scores[1]
    assert np.isfinite(scored.scores).all()


def test_what_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    plain = tiny_models.bert(tmp_path / "plain")
    declared = tiny_models.declare(tiny_models.bert(tmp_path / "declared"))
    for path, reason in (
        (plain, "no cross-encoder .*no weights for classifier"),
        (declared, "no cross-encoder .*its modules give vectors"),
        ("all-MiniLM-L6-v2", "no cross-encoder .*its modules give vectors"),
    ):
        with pytest.raises(InputError, match=reason):
            Reranker.load(path)


def test_several_labels_are_refused(tmp_path: Path) -> None:
    path = cross_encoder(tmp_path / "model", num_labels=3)
    with pytest.raises(InputError, match="has 3 labels, and a re-ranker has one"):
        Reranker.load(path)


@pytest.mark.parametrize("limit", [1, 3])
def test_a_limit_without_room_for_text_is_refused(folder: Path, limit: int) -> None:
    with pytest.raises(InputError, match="leaves no room"):
        Reranker.load(folder, max_tokens=limit)


def test_a_cross_encoder_is_no_encoder_of_texts(folder: Path) -> None:
    with pytest.raises(InputError, match=r"is a cross-encoder.*--rerank"):
        Encoder.load(folder)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    path = cross_encoder(tmp_path / "model")
    (path / "model.safetensors").rename(path / "pytorch_model.bin")
    with pytest.raises(InputError, match="safetensors"):
        Reranker.load(path)


def test_code_of_a_model_runs_only_when_it_is_allowed(tmp_path: Path) -> None:
    path = cross_encoder(tmp_path / "model")
    tiny_models.edit_json(
        path / "config.json", auto_map={"AutoConfig": "own.Config"}, model_type="own"
    )
    (path / "own.py").write_text("raise SystemExit('ran')")
    with pytest.raises(InputError, match="trust_remote_code"):
        Reranker.load(path)


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert"])
def test_an_export_gives_the_same_scores_without_torch(tmp_path: Path, kind: str) -> None:
    path = cross_encoder(tmp_path / "model", kind)
    reranker = Reranker.load(path)
    manifest = reranker.export(tmp_path / "exported")
    assert (manifest.task, manifest.activation) == ("rerank", "Sigmoid")
    exported = Reranker.load(tmp_path / "exported")
    assert exported.fingerprint == reranker.fingerprint
    assert exported.max_tokens == reranker.max_tokens
    np.testing.assert_allclose(exported.score(PAIRS), reranker.score(PAIRS), atol=1e-5)
    with pytest.raises(InputError, match="task"):
        Encoder.load(tmp_path / "exported")


def test_an_int8_export_gives_nearly_the_same_scores(tmp_path: Path, folder: Path) -> None:
    reranker = Reranker.load(folder)
    reranker.export(tmp_path / "exported", precision="int8")
    exported = Reranker.load(tmp_path / "exported", precision="int8")
    exact, found = (one.score(PAIRS, activated=False) for one in (reranker, exported))
    assert np.corrcoef(exact, found)[0, 1] > 0.9
    assert not np.array_equal(exact, found)


def test_the_ranges_of_8_bits_come_from_the_pairs_that_are_given(
    tmp_path: Path, folder: Path
) -> None:
    reranker = Reranker.load(folder)
    for name, pairs in (("few", [("a", "b")]), ("many", PAIRS), ("default", None)):
        reranker.export(tmp_path / name, precision="int8", calibrate=pairs)
    models = [
        (tmp_path / name / "encoder.onnx").read_bytes() for name in ("few", "many", "default")
    ]
    assert len(set(models)) == 3
    with pytest.raises(InputError, match="no pairs"):
        reranker.export(tmp_path / "none", precision="int8", calibrate=[])
    with pytest.raises(InputTypeError, match="row 0: expected a pair"):
        reranker.export(tmp_path / "none", precision="int8", calibrate=["text"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="calibrate is for precision int8"):
        reranker.export(tmp_path / "none", calibrate=PAIRS)


def test_an_export_in_the_cache_serves_the_next_load(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = Reranker.load(folder)
    expected = reranker.score(PAIRS)
    reranker.export_folder()
    monkeypatch.setattr("sbertkit.encoder.torch_runtime.load_torch_runtime", None)
    again = Reranker.load(folder)
    np.testing.assert_allclose(again.score(PAIRS), expected, atol=1e-5)
    assert again.fingerprint == reranker.fingerprint


@pytest.mark.skipif(find_spec("openvino") is None, reason="OpenVINO is not installed")
def test_pairs_are_scored_by_the_fastest_library_that_is_installed(
    tmp_path: Path, folder: Path
) -> None:
    Reranker.load(folder).export(tmp_path / "exported")
    exported = Reranker.load(tmp_path / "exported")
    assert type(exported._runtime.backend(1)) is OpenvinoBackend
    by_onnx = Reranker.load(tmp_path / "exported", backend="onnx")
    assert type(by_onnx._runtime.backend(1)) is OnnxBackend
    np.testing.assert_allclose(exported.score(PAIRS), by_onnx.score(PAIRS), atol=1e-5)


def test_scores_of_groups_of_pairs_come_in_order_whatever_their_sizes(reranker: Reranker) -> None:
    groups = [[], PAIRS[:1], [], [], PAIRS, PAIRS[1:3] * 40, [], []]
    found = list(grouped_scores(iter(groups), reranker.start_run()))
    assert [len(scores) for scores in found] == [len(group) for group in groups]
    for group, scores in zip(groups, found, strict=True):
        np.testing.assert_allclose(scores, reranker.score(group, activated=False), atol=1e-5)
    assert list(grouped_scores([], reranker.start_run())) == []


def test_an_export_of_an_encoder_is_no_reranker(tmp_path: Path) -> None:
    Encoder.load(tiny_models.bert(tmp_path / "plain")).export(tmp_path / "exported")
    with pytest.raises(InputError, match="task"):
        Reranker.load(tmp_path / "exported")


def test_truncation_shares_the_room_as_the_library_does() -> None:
    import transformers

    from sbertkit.encoder.pair_tokens import kept

    tokenizer = transformers.BertTokenizer(
        vocab={"[UNK]": 0, "[PAD]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5, "b": 6}
    )
    for first in range(8):
        for second in range(8):
            for limit in range(5, 16):
                pair = ("a " * first, "b " * second)
                (ids,) = tokenizer([pair], truncation="longest_first", max_length=limit)[
                    "input_ids"
                ]
                assert kept(first, second, limit - 3) == (ids.count(5), ids.count(6))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", "sing"),
        ("task", "embed"),
        ("activation", "Squash"),
        ("activation", 3),
        ("dim", 2),
        ("pooling", "median"),
    ],
)
def test_an_export_that_describes_itself_wrongly_is_refused(
    tmp_path: Path, folder: Path, field: str, value: object
) -> None:
    Reranker.load(folder).export(tmp_path / "exported")
    path = tmp_path / "exported" / "export.json"
    content = {**tiny_models.read_json(path), field: value}
    del content["sha256"]
    path.write_bytes(seal(content))
    with pytest.raises(InputError, match=field if value != "embed" else "pooling"):
        Reranker.load(tmp_path / "exported")


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert"])
def test_a_saved_model_gives_the_same_scores_here_and_in_the_library(
    tmp_path: Path, kind: str
) -> None:
    options = {"prompts": {"web": "find: "}, "default_prompt_name": "web"}
    path = cross_encoder(tmp_path / "model", kind, activation_fn=torch.nn.Tanh(), **options)
    reranker = Reranker.load(path, max_tokens=40)
    reranker.save(tmp_path / "saved")
    expected = reranker.score(PAIRS)
    again = Reranker.load(tmp_path / "saved")
    assert (again.fingerprint, again.max_tokens) == (reranker.fingerprint, 40)
    np.testing.assert_array_equal(again.score(PAIRS), expected)
    library = CrossEncoder(str(tmp_path / "saved"))
    np.testing.assert_allclose(library.predict(PAIRS), expected, atol=1e-5)
    with pytest.raises(InputError, match="which sbertkit did not write there"):
        reranker.save(path)
