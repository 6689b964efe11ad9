"""Tokens that a tokenizer does not know are counted, and warned of when there are many."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sbertkit import Encoder, EncodeReport, SearchIndex

CHINESE = ["股市大跌的消息", "今天天气很好", "我们去公园散步"]


def report_of(encoder: Encoder, texts: list[str]) -> EncodeReport:
    return encoder.encode_with_report(texts).report


def test_the_bundled_model_says_that_it_reads_no_chinese(
    bundled_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    report = report_of(bundled_encoder, CHINESE * 3)
    assert report.unknown_share > 0.5
    assert report.unknown_tokens == 3 * report_of(bundled_encoder, CHINESE).unknown_tokens
    assert len(report.mostly_unknown) >= 6
    warning = caplog.messages[0]
    assert f"{report.unknown_share:.0%} of the tokens are unknown to the tokenizer" in warning
    for words in ("30,522 tokens", "multilingual-MiniLM", "multilingual-e5-small", "bge-m3"):
        assert words in warning


def test_a_few_unknown_tokens_are_counted_without_a_word(
    bundled_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["a text of eleven words that everybody with a dictionary knows", "🫠🫠"]
    report = report_of(bundled_encoder, [*texts, texts[0]])
    assert (report.unknown_tokens, report.mostly_unknown) == (1, (1,))
    assert report.text_tokens == 2 * 11 + 1
    assert report.unknown_share == 1 / 23
    assert caplog.messages == []


@pytest.mark.parametrize("family", ["bert", "mpnet", "albert", "xlnet", "t5"])
def test_every_vocabulary_with_such_a_token_counts_it(
    tiny_folder: Callable[..., Path], family: str
) -> None:
    encoder = Encoder.load(tiny_folder(family), pooling="mean")
    report = report_of(encoder, ["a ☃", "a boat"])
    assert report.unknown_tokens == 1


def test_bytes_are_never_unknown(tiny_folder: Callable[..., Path]) -> None:
    report = report_of(Encoder.load(tiny_folder("roberta"), pooling="mean"), CHINESE)
    assert (report.unknown_tokens, report.unknown_share) == (0, 0.0)


def test_no_text_has_no_share(tiny_encoder: Encoder) -> None:
    assert report_of(tiny_encoder, []).unknown_share == 0
    assert report_of(tiny_encoder, [""]).unknown_share == 0


def test_an_index_and_its_queries_warn_too(
    tiny_encoder: Encoder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SearchIndex.build(CHINESE, tiny_encoder, tmp_path / "index") as index:
        assert any("unknown to the tokenizer" in one for one in caplog.messages)
        caplog.clear()
        index.search(CHINESE[0])
        assert any("unknown to the tokenizer" in one for one in caplog.messages)
    caplog.clear()
    with SearchIndex.open(tmp_path / "index") as index:  # by the bundled export
        index.search(CHINESE[0])
    assert any("unknown to the tokenizer" in one for one in caplog.messages)
