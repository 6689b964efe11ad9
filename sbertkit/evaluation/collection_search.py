"""What is found in a collection by its words, or by vectors and words, without a built index."""

import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sbertkit.data import ReadOptions
from sbertkit.data.retrieval import Collection
from sbertkit.encoder import Encoder
from sbertkit.encoder.long_options import LongOptions
from sbertkit.evaluation.answers import Answers, answers_of, from_index, relevant
from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.options import LexicalOptions
from sbertkit.lexical.postings_file import WORDS_FILE, PostingsFile
from sbertkit.lexical.postings_writer import write_postings
from sbertkit.lexical.query import parse_query
from sbertkit.lexical.search import LexicalSearch, LexicalSegment
from sbertkit.retrieval import BuildOptions, Fusion, SearchIndex
from sbertkit.retrieval.corpus import CorpusReader
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore
from sbertkit.retrieval.lexical_index import describe_words
from sbertkit.retrieval.modes import HYBRID


def from_words(
    collection: Collection, k: int, options: LexicalOptions, *, progress: bool
) -> Answers:
    """The `k` best documents for each query by BM25; the corpus is never in memory.

    Raises:
        InputError: A bad corpus.
    """
    with tempfile.TemporaryDirectory() as name:
        database, words = (Path(name) / file for file in (DOCUMENTS_FILE, WORDS_FILE))
        reader = CorpusReader(collection.folder, ReadOptions())
        if not reader.stage(database, reader.documents, progress=progress):
            raise reader.empty_corpus_error()
        with closing(DocumentStore(database)) as documents:
            entry = describe_words(options, [documents])
            analyzer = Analyzer(entry.language)
            write_postings(words, documents.texts(), analyzer)
            segment = LexicalSegment(PostingsFile(words, len(documents)), None)
            search = LexicalSearch([segment], entry.bm25)
            run = {}
            for query, text in collection.queries.items():
                found = search.search(parse_query(text, analyzer), k)
                numbers, scores = found.numbers.tolist(), found.scores.tolist()
                stored = documents.at(numbers)
                run[query] = {
                    stored[number].id: score for number, score in zip(numbers, scores, strict=True)
                }
            judged = list(relevant(collection.qrels))
            known = documents.find([*judged, *collection.queries])
    missing = [document for document in judged if document not in known]
    same_ids = {query: known[query].text for query in collection.queries if query in known}
    return answers_of(run, collection, missing, same_ids)


def from_both(
    encoder: Encoder,
    collection: Collection,
    k: int,
    long: LongOptions,
    fusion: Fusion,
    *,
    progress: bool,
) -> Answers:
    """The `k` best documents for each query of an index that is built for it, by exact search.

    Raises:
        InputError: A bad corpus, or an overlap that does not suit the encoder.
    """
    with (
        tempfile.TemporaryDirectory() as name,
        SearchIndex.build(
            collection.folder,
            encoder,
            Path(name) / "index",
            kind="flat",
            with_encoder=False,
            progress=progress,
            long=long.mode,
            options=BuildOptions(overlap=long.overlap),
        ) as index,
    ):
        answers = from_index(index, collection, k, mode=HYBRID, fusion=fusion, shown=0)
    return replace(answers, passages={})
