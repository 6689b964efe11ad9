"""Long texts in passages: what every passage is, whatever the text and the tokenizer."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
import transformers
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from notes import Note

from sbertkit.data.text import is_blank, repair_surrogates
from sbertkit.encoder import Encoder, long_texts, slots, tokenization
from sbertkit.encoder.passages import PassageSplitter, Span
from sbertkit.encoder.prompts import Prompts
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.errors import InputError, InputTypeError

LOAD = Callable[[str], Tokenizer]
WORDS = [
    *("the", "heron", "Salt.", "don't", "x,", "1,234.5", "Ünïcödé", "e\u0301\u0302", "ΟΔΟΣ."),
    *("今天天气很好。", "日本語のテキスト、", "「はい」", "ภาษาไทยไม่มีช่องว่าง", "हिन्दी।", "क्षत्रिय"),
    *("السلام؟", "עברית", "👩‍👩‍👧‍👦", "👍🏽", "🇫🇷🇩🇪", "한국어", "\ud83d\ude00", "\udc00", "\u200b"),
    *(
        "# Title\n",
        "## Sub\n",
        "```\n",
        "- item\n",
        "| a | b |\n",
        "---\n",
        "def f(x):\n    ",
        "so:",
    ),
    *(
        "[SEP]",
        "</s>",
        "y" * 60,
        "ACGT" * 60,
        "ก" * 150,
        "=" * 30,
        "\ufffd",
        "\x00",
        "a\u0301" * 40,
    ),
]
SPACES = [" ", " ", " ", "", "\n", "\n\n", "\t ", "\u3000", "\r\n", " " * 40]
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=120).map(
    lambda pairs: "".join(itertools.chain.from_iterable(pairs))
)
TOKENIZERS = ("bert", "roberta", "albert", "t5", "deberta_v2", "llama", "clip_text", "byte_t5")
LENIENT = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def load(tiny_folder: Callable[..., object]) -> LOAD:
    @cache
    def tokenizer(architecture: str) -> Tokenizer:
        return Tokenizer(transformers.AutoTokenizer.from_pretrained(tiny_folder(architecture)))

    return tokenizer


def passage_texts(text: str, passages: list[Span]) -> list[str]:
    return [text[start:end] for start, end, _ in passages]


def token_counts(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    """Tokens of each text alone, by the tokenizer itself."""
    encode = tokenizer._fast
    if encode is None:
        return [len(tokenizer.hf(text, add_special_tokens=False)["input_ids"]) for text in texts]
    return [len(found.ids) for found in encode.encode_batch(texts, add_special_tokens=False)]


def check(tokenizer: Tokenizer, text: str, passages: list[Span], room: int) -> None:
    """Everything that holds of the passages of a text without overlap."""
    if is_blank(text):  # which is encoded as the empty text
        assert passages == [Span(0, len(text))]
        return
    pieces = passage_texts(text, passages)
    assert max(token_counts(tokenizer, [repair_surrogates(piece) for piece in pieces])) <= room
    if len(passages) > 1:
        assert not any(is_blank(piece) for piece in pieces)
        assert all(piece == piece.strip() for piece in pieces)
    ends = [0, *(one.end for one in passages)]
    starts = [*(one.start for one in passages), len(text)]
    assert all(is_blank(text[end:start]) for end, start in zip(ends, starts, strict=True))
    assert all(end <= start for end, start in zip(ends, starts, strict=True))


@pytest.mark.parametrize("architecture", TOKENIZERS)
@LENIENT
@given(text=TEXTS, room=st.integers(4, 40), half=st.floats(0, 0.49))
@example(text="the the the ΟΔΟΣ. \ud83d\ude00 ---\n ---\n ", room=14, half=0.0)
def test_every_passage_fits_and_together_they_are_the_text(
    load: LOAD, architecture: str, text: str, room: int, half: float
) -> None:
    tokenizer = load(architecture)
    (passages,) = PassageSplitter(tokenizer, room).split([text])
    check(tokenizer, text, passages, room)
    assert PassageSplitter(tokenizer, room).split(["other", text, text]) == [
        PassageSplitter(tokenizer, room).split(["other"])[0],
        passages,
        passages,
    ]
    splitter = PassageSplitter(tokenizer, room, int(half * room))
    (with_overlap,) = splitter.split([text])
    check_overlap(splitter, text, with_overlap)


@pytest.mark.parametrize("architecture", TOKENIZERS)
@pytest.mark.parametrize("character", ["ﷺ", "\u0301", "\U0001f469\u200d"], ids=ascii)
def test_characters_of_many_tokens_are_divided_where_they_must(
    load: LOAD, architecture: str, character: str
) -> None:
    text = "a" + character * 300
    (passages,) = PassageSplitter(load(architecture), 40).split([text])
    check(load(architecture), text, passages, 40)


def check_overlap(splitter: PassageSplitter, text: str, passages: list[Span]) -> None:
    pieces = [repair_surrogates(piece) for piece in passage_texts(text, passages)]
    if not is_blank(text):
        assert max(token_counts(splitter.tokenizer, pieces)) <= splitter.room
        assert not any(is_blank(piece) for piece in pieces)
    covered = 0
    for (start, end, _), (next_start, next_end, _) in itertools.pairwise(passages):
        assert start <= next_start
        assert end < next_end
    for start, end, _ in passages:
        assert is_blank(text[covered:start])
        covered = end
    assert is_blank(text[covered:])


def test_texts_are_split_alone_as_among_others(load: LOAD, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenization, "_CHARS_PER_CALL", 700)
    splitter = PassageSplitter(load("bert"), 20, 4)
    texts = [f"heron number {number} stands. " * (number % 7) for number in range(40)]
    assert splitter.split(texts) == [splitter.split([text])[0] for text in texts]


@pytest.mark.parametrize("architecture", TOKENIZERS)
def test_a_long_text_is_split_by_windows_as_in_one_piece(
    load: LOAD, architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    splitter = PassageSplitter(load(architecture), 30, 4)
    text = "A heron stands, 日本語 in the water. So\n\n" * 50
    whole = splitter.split([text])
    monkeypatch.setattr(tokenization, "LONG_CHARS", 150)
    monkeypatch.setattr(long_texts, "WINDOW_CHARS", 60)
    monkeypatch.setattr(long_texts, "CONTEXT_CHARS", 250)
    monkeypatch.setattr(slots, "_CHUNK_SLOTS", 64)
    assert splitter.split([text]) == whole


@pytest.mark.parametrize("architecture", TOKENIZERS)
def test_a_text_that_fits_is_one_passage_with_its_white_space(
    load: LOAD, architecture: str
) -> None:
    splitter = PassageSplitter(load(architecture), 30)
    texts = ["", " \n ", " a heron ", "日本語 ", "x" * 28, "\u200b" * 50, " " * 500]
    assert splitter.split(texts) == [[Span(0, len(text))] for text in texts]
    assert splitter.split([]) == []


def test_the_room_is_what_special_tokens_and_prompt_leave(tiny_encoder: Encoder) -> None:
    spec = tiny_encoder._runtime.spec
    assert PassageSplitter.of(spec).room == 64 - 2
    prompted = replace(spec, prompts=Prompts(document="a b: "))
    assert PassageSplitter.of(prompted, 5) == PassageSplitter(spec.tokenizer, 64 - 2 - 3 - 1, 5)
    with pytest.raises(InputError, match=r"leaves no room for text beside 6 .* at least 7"):
        PassageSplitter.of(replace(prompted, max_tokens=6))


@pytest.mark.parametrize("architecture", ["bert", "roberta", "t5", "deberta_v2", "llama"])
@pytest.mark.parametrize("prompt", ["passage: ", "title: none | text: ", "段落："])
def test_passages_are_read_whole_behind_the_prompt(
    load: LOAD, tiny_encoder: Encoder, architecture: str, prompt: str
) -> None:
    spec = replace(
        tiny_encoder._runtime.spec,
        tokenizer=load(architecture),
        prompts=Prompts(document=prompt),
    )
    text = "The heron, 日本語 in the water. A baker\n\n" * 100
    for overlap in (0, 4):
        (passages,) = PassageSplitter.of(spec, overlap).split([text])
        tokens = spec.tokenize([prompt + part for part in passage_texts(text, passages)])
        assert not any(token.truncated for token in tokens)


def test_without_a_limit_nothing_is_split(tiny_encoder: Encoder) -> None:
    spec = replace(tiny_encoder._runtime.spec, max_tokens=None)
    text = "日本語 heron " * 1_000
    assert PassageSplitter.of(spec).split([text]) == [[Span(0, len(text))]]


@pytest.mark.parametrize(
    ("overlap", "error", "message"),
    [
        (-1, InputError, "overlap must be at least 0, not -1"),
        (10, InputError, "below half of the 20 tokens of a passage, not 10; choose at most 9"),
        (2.0, InputTypeError, "overlap must be a whole number, not 2.0"),
        (True, InputTypeError, "overlap must be a whole number, not True"),
    ],
)
def test_a_wrong_overlap_is_refused(
    load: LOAD, overlap: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PassageSplitter(load("bert"), 20, overlap)
    assert PassageSplitter(load("bert"), 20, 9).overlap == 9


@pytest.mark.parametrize(("overlap", "often", "always"), [(0, 3, 5), (30, 4, 6)])
def test_an_edit_of_one_paragraph_changes_few_passages(
    bundled_encoder: Encoder, overlap: int, often: int, always: int
) -> None:
    splitter = PassageSplitter(bundled_encoder.tokenizer, 126, overlap)
    note = Note(seed=1, blocks=90)
    text = "\n\n".join(note.blocks)
    old = set(passage_texts(text, splitter.split([text])[0]))
    assert len(old) >= 50
    edited = ["\n\n".join(new) for place in range(0, 90, 3) for new in note.edits(place)]
    changed = [
        sum(part not in old for part in passage_texts(new, passages))
        for new, passages in zip(edited, splitter.split(edited), strict=True)
    ]
    assert max(changed) <= always
    assert sum(count <= often for count in changed) >= 0.95 * len(changed)


def test_headings_stay_with_their_text_and_short_blocks_whole(bundled_encoder: Encoder) -> None:
    tokenizer = bundled_encoder.tokenizer
    for seed in range(3):
        note = Note(seed, blocks=150)
        note.blocks.append("The end.")
        text = "\n\n".join(note.blocks)
        (passages,) = PassageSplitter(tokenizer, 126).split([text])
        ends = {one.end for one in passages}
        counts = token_counts(tokenizer, note.blocks)
        place = 0
        for block, following, count in zip(note.blocks, note.blocks[1:], counts, strict=False):
            end = place + len(block)
            if block.startswith("#"):
                assert end not in ends or following.startswith("#")
            if count <= 126 // 3:
                assert not ends.intersection(range(place, end)), block
            place = end + 2


@pytest.mark.parametrize(
    "text",
    [
        "今天天气很好，我们去公园。" * 400,
        "日本語の文章です。とても長い" * 400,
        "ภาษาไทยเขียนติดกันโดยไม่มีช่องว่าง" * 300,
        "هذه جملة عربية طويلة. " * 300,
        "यह हिन्दी का एक वाक्य है। " * 300,
        "👩‍👩‍👧‍👦👍🏽🇫🇷" * 500,
        "def f(x):\n    return x + 1\n\n\n" * 300,
        "\n".join(f"{n} {n * 7 % 13}.5 -{n * n}" for n in range(3_000)),
        Random(0).randbytes(500_000).hex(),  # 1 MB without a space
        "a" * 100_000,
    ],
    ids=["zh", "ja", "th", "ar", "hi", "emoji", "code", "numbers", "line", "letter"],
)
def test_texts_of_the_world_are_split_by_a_real_tokenizer(
    bundled_encoder: Encoder, text: str
) -> None:
    tokenizer = bundled_encoder.tokenizer
    splitter = PassageSplitter(tokenizer, 126)
    (passages,) = splitter.split([text])
    check(tokenizer, text, passages, 126)
    assert np.mean([end - start for start, end, _ in passages]) > 126 / 3


@pytest.mark.parametrize("room", [126, 254])
def test_a_long_word_is_divided_where_its_pieces_have_tokens(
    bundled_encoder: Encoder, room: int
) -> None:
    tokenizer = bundled_encoder.tokenizer
    dna, unknown = "GATTACA" * 200, "ဴၷၸ" * 400
    readable, other = PassageSplitter(tokenizer, room).split([dna, unknown])
    assert all(
        tokens.unknown == 0 for tokens in tokenizer.tokenize(passage_texts(dna, readable), None)
    )
    assert len(other) < 1_200 / room * 2.5


@pytest.mark.parametrize("architecture", ["bert", "roberta", "t5"])
@pytest.mark.parametrize(
    "unit", [" ", ".", "\n", "a", "a\n", "\u0301", "é ", "\u200b", "👍🏽"], ids=ascii
)
def test_monotonous_texts_take_no_longer_than_others(
    load: LOAD, architecture: str, unit: str
) -> None:
    text = "b" + unit * 60_000 + "c"
    (passages,) = PassageSplitter(load(architecture), 60, 7).split([text])
    check_overlap(PassageSplitter(load(architecture), 60, 7), text, passages)
