"""The answers of a system, ordered again by a re-ranker."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sbertkit.arrays import Vectors
from sbertkit.data import read_corpus
from sbertkit.data.retrieval import Collection, Run
from sbertkit.data.retrieval.runs import ranked
from sbertkit.evaluation.answers import Answers, document_text
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.reranking.grouped import grouped_scores
from sbertkit.reranking.reranker import Pair
from sbertkit.retrieval import SearchIndex
from sbertkit.retrieval.rerank import Reranking

TextOf = Callable[[str, str], str | None]
"""Gives what is read of a document for a query, by their ids; None if it is not known."""


def rerank_answers(
    answers: Answers, collection: Collection, reranking: Reranking, text_of: TextOf
) -> Answers:
    """Answers whose first documents have a re-ranker's scores, the others follow in their order.

    Args:
        answers: What a system has found.
        collection: Whose queries they are.
        reranking: The re-ranker, and how many documents of a query it scores.
        text_of: Gives texts; a document without one is among those that follow.
    """
    heads: deque[tuple[str, list[str]]] = deque()

    def groups() -> Iterator[list[Pair]]:
        for query, found in answers.run.items():
            if query not in collection.queries:  # of a run, not judged
                continue
            texts = {one: text_of(query, one) for one in ranked(found)[: reranking.depth]}
            known = {one: text for one, text in texts.items() if text is not None}
            heads.append((query, list(known)))
            yield [(collection.queries[query], text) for text in known.values()]

    scored: dict[str, Mapping[str, float]] = {}
    encoding = reranking.reranker.start_run()
    for scores in grouped_scores(groups(), encoding):
        query, head = heads.popleft()
        scored[query] = _scores(answers.run[query], head, scores)
    run = {query: scored.get(query, found) for query, found in answers.run.items()}
    return replace(answers, run=run, reranked=TextCounts.of(encoding.report()))


def _scores(found: Mapping[str, float], head: list[str], scores: Vectors) -> dict[str, float]:
    result = dict(zip(head, scores.tolist(), strict=True))
    lowest = min(result.values(), default=0.0)
    tail = [one for one in ranked(found) if one not in result]
    return result | {one: lowest - place for place, one in enumerate(tail, 1)}


def texts_of_index(index: SearchIndex, answers: Answers) -> TextOf:
    """Texts of an index: of a divided document the passage that was found."""

    def text_of(query: str, document: str) -> str | None:
        text = document_text(index, document)
        if text is None:
            return None
        start, end = answers.passages.get(query, {}).get(document, (0, len(text)))
        return text[start:end]

    return text_of


def texts_of_corpus(collection: Collection, run: Run, depth: int) -> TextOf:
    """Texts of the documents among the first of any query, all of which are then in memory."""
    wanted = {one for found in run.values() for one in ranked(found)[:depth]}
    texts = {
        document.id: document.text
        for document, _ in read_corpus(collection.folder)
        if document.id in wanted
    }
    return lambda _, document: texts.get(document)
