"""The tasks that rebuild a text from its vector: what is deleted and sampled, what decoders see."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from docs_files import sentences
from torch.nn import functional

from sbertkit import DeletedWords, Encoder, InputError, MaskedAutoencoder
from sbertkit.training.pretraining.decoders import CausalDecoder, EnhancedDecoder
from sbertkit.training.pretraining.draws import HELD_OUT, Draws
from sbertkit.training.pretraining.heads import LmHead, predicted
from sbertkit.training.pretraining.pieces import PADDING, Pieces
from sbertkit.training.pretraining.tasks.retromae import DECODER

TOKENS = 1_000_000
HIDDEN, SIZE, VOCABULARY = 24, 16, 50
CHINESE = "\u4e00\u4e2a\u4eba\u4e0d\u4e86\u89e3\u5b83"


def encoder_of(kind: str, folder: Path, pooling: str = "mean") -> Encoder:
    return Encoder.load(tiny_models.ARCHITECTURES[kind](folder), pooling=pooling, device="cpu")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return encoder_of("bert", tmp_path_factory.mktemp("encoder") / "bert")


def pieces_of(encoder: Encoder, texts: list[str], *, pack: bool = False) -> Pieces:
    pieces = Pieces(encoder, pack=pack)
    pieces.read(texts)
    return pieces


def words_of(random: np.random.Generator, longest: int = 60) -> Any:
    """The words of a text of ten words and more, of one to five tokens, between special ones."""
    sizes = random.choice([1, 1, 1, 2, 2, 3, 5], random.integers(10, longest))
    return np.r_[-1, np.repeat(np.arange(len(sizes)), sizes), -1]


# --- what is deleted


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_of_a_million_tokens_the_share_is_deleted(share: float) -> None:
    random, task = np.random.default_rng(1), DeletedWords(deletion=share)
    tokens = deleted = 0
    while tokens < TOKENS:
        words = words_of(random)
        stays = task.kept(words, random)
        assert stays[words < 0].all(), "a special token was deleted"
        tokens += len(words) - 2
        deleted += int((~stays).sum())
    assert deleted / tokens == pytest.approx(share, abs=0.005)
    assert DeletedWords().deletion == 0.6


def test_words_are_deleted_as_a_whole_and_one_stays() -> None:
    random, task = np.random.default_rng(2), DeletedWords(deletion=0.9)
    for count in [*range(1, 6)] * 200:
        words = np.r_[-1, np.repeat(np.arange(count), 2), -1, -1]
        stays = task.kept(words, random)
        of_words = stays[1:-2].reshape(count, 2)
        assert (of_words[:, 0] == of_words[:, 1]).all()
        assert of_words.any()


def test_what_is_left_keeps_its_order_and_all_is_to_be_rebuilt(encoder: Encoder) -> None:
    pieces, task = pieces_of(encoder, sentences()[:30]), DeletedWords()
    batch = task.batch(pieces, np.arange(30), Draws(3, 0))
    end = encoder.spec.tokenizer.special.after[0]
    shorter = 0
    for row in range(30):
        whole = pieces.tokens[row].ids
        left = batch["input_ids"][row][batch["mask"][row] == 1].tolist()
        tokens = batch["tokens"][row]
        assert tokens[tokens != PADDING].tolist() == whole[1:].tolist()
        assert tokens[tokens != PADDING][-1] == end
        at = iter(whole.tolist())
        assert all(token in at for token in left), "not in their order"
        assert (left[0], left[-1]) == (whole[0], whole[-1])
        shorter += len(left) < len(whole)
    assert shorter >= 25


@pytest.mark.parametrize(
    ("kind", "end"), [("bert", 1), ("xlnet", 1), ("t5", 1), ("gpt2", 0), ("llama", 0)]
)
def test_texts_are_rebuilt_with_their_end_token_where_there_is_one(
    kind: str, end: int, tmp_path: Path
) -> None:
    encoder = encoder_of(kind, tmp_path / kind)
    texts = ["two bakers eat bread", "a heron"]
    pieces = pieces_of(encoder, texts)
    bare = [tokens.ids.tolist() for tokens in encoder.spec.tokenizer.tokenize_bare(texts, None)]
    for numbers, ends in (
        (pieces.bare(np.arange(2)), 0),
        (pieces.bare(np.arange(2), end=True), end),
    ):
        for row, ids in zip(numbers, bare, strict=True):
            own = row[row != PADDING].tolist()
            assert own[: len(ids)] == ids
            assert len(own) == len(ids) + ends


def test_deletions_differ_from_epoch_to_epoch_and_are_the_same_again(encoder: Encoder) -> None:
    pieces, numbers = pieces_of(encoder, sentences()[:20]), np.arange(20)

    def left(epoch: int) -> list[list[int]]:
        rows: list[list[int]] = (
            DeletedWords().batch(pieces, numbers, Draws(1, epoch))["input_ids"].tolist()
        )
        return rows

    assert left(0) == left(0)
    assert left(0) != left(1)
    assert left(HELD_OUT) == left(HELD_OUT)


def test_chinese_is_deleted_by_words(encoder: Encoder) -> None:
    pieces = pieces_of(encoder, [CHINESE])
    words = pieces.words[0]
    assert (np.bincount(words[words >= 0]) > 1).any(), "no word of several characters"
    random = np.random.default_rng(1)
    for _ in range(50):
        stays = DeletedWords().kept(words, random)
        for word in range(words.max() + 1):
            assert len(set(stays[words == word].tolist())) == 1


# --- what is sampled


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_each_token_has_a_context_of_its_own_without_itself(share: float) -> None:
    random, task = np.random.default_rng(4), MaskedAutoencoder(decoder_mask=share)
    seen = pairs = 0
    while pairs < TOKENS:
        words = words_of(random)[1:-1]
        context = task.context(words, random)
        count = len(words)
        assert context.shape == (count, count)
        assert not context.diagonal().any()
        assert len({row.tobytes() for row in context}) > count / 2, "contexts are the same"
        others = ~np.eye(count, dtype=np.bool_)
        seen += int(context[others].sum())
        pairs += int(others.sum())
    assert seen / pairs == pytest.approx(1 - share, abs=0.005)


def test_contexts_have_whole_words_but_for_the_token_itself() -> None:
    words = np.array([0, 0, 0, 1, 2, 2, -1, -1, 3])
    context = MaskedAutoencoder().context(words, np.random.default_rng(5))
    for token in range(len(words)):
        for word in (0, 2):
            places = [at for at in np.flatnonzero(words == word) if at != token]
            assert len(set(context[token, places].tolist())) == 1
    drawn = [MaskedAutoencoder().context(words, np.random.default_rng(n)) for n in range(20)]
    assert any((one[0, 6] != one[0, 7]) for one in drawn), "special tokens are no word"


def test_encoder_and_decoder_are_masked_independently(encoder: Encoder) -> None:
    text = " ".join(["heron bakers salt bread"] * 8)
    task = MaskedAutoencoder()
    masks, contexts = [], []
    pieces = pieces_of(encoder, [text])
    made: Any = task.prepared(encoder, pieces)
    for epoch in range(400):
        batch = made.batch(pieces, np.array([0]), Draws(1, epoch))
        row = np.zeros(batch["input_ids"].shape[1])
        row[batch["places"].numpy()] = 1
        masks.append(row[1:-1])
        contexts.append(batch["visible"][0, 0, 2:].numpy())
        assert batch["visible"][0, :, 0].all(), "the vector is always seen"
    one, two = np.array(masks, np.float64)[:, 1:], np.array(contexts, np.float64)
    correlation = np.corrcoef(one.ravel(), two.ravel())[0, 1]
    assert abs(correlation) < 0.05
    assert one.mean() == pytest.approx(0.3, abs=0.02)
    assert two.mean() == pytest.approx(0.5, abs=0.02)


# --- what decoders see


def decoded(decoder: torch.nn.Module, vectors: Any, ids: Any, *more: Any) -> torch.Tensor:
    embedding = torch.randn(VOCABULARY, SIZE, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        states: torch.Tensor = decoder.eval()(vectors, ids, *more, embedding)
    return states


def test_the_causal_decoder_sees_the_vector_and_what_is_before() -> None:
    torch.manual_seed(2)
    decoder = CausalDecoder(8, SIZE, HIDDEN, layers=2, scores=torch.nn.Identity())
    vectors, ids = torch.randn(1, 8), torch.arange(1, 8)[None]
    before = decoded(decoder, vectors, ids)
    assert before.shape == (1, 7, HIDDEN)
    for place in range(7):
        other = ids.clone()
        other[0, place] = 40
        changed = (decoded(decoder, vectors, other) - before).abs().amax(dim=2)[0] > 1e-6
        assert changed.tolist() == [at > place for at in range(7)]
    assert ((decoded(decoder, torch.randn(1, 8), ids) - before).abs().amax(dim=2) > 1e-4).all()
    longer = torch.cat((ids, torch.full((1, 3), PADDING)), dim=1)
    assert torch.allclose(decoded(decoder, vectors, longer)[:, :7], before, atol=1e-6)


def test_the_causal_decoder_tells_orders_of_words_apart() -> None:
    torch.manual_seed(2)
    decoder = CausalDecoder(8, SIZE, HIDDEN, layers=1, scores=torch.nn.Identity())
    vectors = torch.randn(1, 8)
    one, two = (decoded(decoder, vectors, torch.tensor([ids])) for ids in ([1, 2, 3], [2, 1, 3]))
    assert (one[0, 2] - two[0, 2]).abs().max() > 1e-4


def test_the_enhanced_decoder_sees_the_vector_and_the_context_of_each_token() -> None:
    torch.manual_seed(3)
    decoder = EnhancedDecoder(8, SIZE, HIDDEN)
    vectors, ids = torch.randn(1, 8), torch.arange(1, 7)[None]
    visible = torch.rand(1, 6, 7) < 0.5
    visible[:, :, 0] = True
    before = decoded(decoder, vectors, ids, visible)
    assert before.shape == (1, 6, HIDDEN)
    for place in range(6):
        other = ids.clone()
        other[0, place] = 40
        changed = (decoded(decoder, vectors, other, visible) - before).abs().amax(dim=2)[0] > 1e-6
        assert changed.tolist() == visible[0, :, 1 + place].tolist()
    moved = decoded(decoder, torch.randn(1, 8), ids, visible)
    assert ((moved - before).abs().amax(dim=2) > 1e-4).all()
    padded = torch.zeros(1, 8, 9, dtype=torch.bool)
    padded[:, :6, :7], padded[:, :, 0] = visible, True
    longer = torch.cat((ids, torch.full((1, 2), PADDING)), dim=1)
    found = decoded(decoder, vectors, longer, padded)
    assert torch.allclose(found[:, :6], before, atol=1e-6)
    assert found.isfinite().all()


# --- losses


class Network(torch.nn.Module):
    """Input embeddings, as an encoder's network has them."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = self
        self.embedding = torch.nn.Embedding(VOCABULARY, SIZE)

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.embedding


def test_the_loss_of_many_tokens_is_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(4)
    network = Network()
    head = LmHead(HIDDEN, SIZE, VOCABULARY, activation="gelu", eps=1e-12)
    states = torch.randn(23, HIDDEN, requires_grad=True)
    targets = torch.randint(VOCABULARY, (23,))
    scores = head(states, network.embedding.weight)
    expected = functional.cross_entropy(scores, targets)
    gradients = torch.autograd.grad(expected, [states, network.embedding.weight])
    for size in (4, 23, 100):
        monkeypatch.setattr("sbertkit.training.pretraining.heads._SCORED", size)
        found = predicted(head, states, network, targets)
        assert float(found.loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
        assert int(found.correct) == int((scores.argmax(dim=1) == targets).sum())
        for one, two in zip(
            torch.autograd.grad(found.loss, [states, network.embedding.weight]),
            gradients,
            strict=True,
        ):
            assert torch.allclose(one, two, atol=1e-6)


def test_the_loss_of_denoising_is_that_of_the_formula(encoder: Encoder) -> None:
    pieces, task = pieces_of(encoder, sentences()[:4]), DeletedWords()
    head = task.task_head(encoder).eval()
    network = encoder.torch.network
    batch = task.batch(pieces, np.arange(4), Draws(1, 0))
    with torch.no_grad():
        found = task.token_loss(network, batch, head)
        losses, right = [], 0
        for row in range(4):  # alone, token by token
            one = {name: value[row : row + 1] for name, value in batch.items()}
            real = int(one["mask"].sum())
            vector = network(one["input_ids"][:, :real], one["mask"][:, :real])
            ids = one["tokens"][one["tokens"] >= 0]
            decoder: Any = head["denoising-decoder"]
            weight = network.transformer.get_input_embeddings().weight
            for end in range(1, len(ids) + 1):
                states = decoder(vector, ids[None, :end], weight)
                scores = decoder.scores(states[:, -1], weight)[0].log_softmax(dim=0)
                losses.append(-float(scores[ids[end - 1]]))
                right += int(scores.argmax()) == int(ids[end - 1])
    assert float(found.loss) == pytest.approx(np.mean(losses), rel=1e-4)
    assert (int(found.correct), found.total) == (right, len(losses))


def test_the_loss_of_the_auto_encoder_is_the_sum_of_both(encoder: Encoder) -> None:
    pieces = pieces_of(encoder, sentences()[:4])
    task: Any = MaskedAutoencoder().prepared(encoder, pieces)
    head = task.task_head(encoder).eval()
    network = encoder.torch.network
    batch = task.batch(pieces, np.arange(4), Draws(1, 0))
    with torch.no_grad():
        found = task.token_loss(network, batch, head)
        states = network.states(batch["input_ids"], batch["mask"], batch.get("types"))
        weight = network.transformer.get_input_embeddings().weight
        flat = states.last_hidden_state.flatten(0, 1)
        scores = head["masked-lm"](flat[batch["places"]], weight)
        masked = float(functional.cross_entropy(scores, batch["targets"]))
        vectors = network(batch["input_ids"], batch["mask"], batch.get("types"))
        rebuilt = head[DECODER](vectors, batch["tokens"], batch["visible"], weight)
        real = batch["tokens"] >= 0
        scores = head["masked-lm"](rebuilt[real], weight)
        decoded = float(functional.cross_entropy(scores, batch["tokens"][real]))
    assert float(found.loss) == pytest.approx(masked + decoded, rel=1e-5)
    assert found.total == int(real.sum()) == sum(len(one.ids) - 2 for one in pieces.tokens)


# --- what is refused


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_shares_that_are_none_are_refused(share: float) -> None:
    with pytest.raises(InputError, match="deletion must be"):
        DeletedWords(deletion=share)
    with pytest.raises(InputError, match="decoder_mask must be"):
        MaskedAutoencoder(decoder_mask=share)
