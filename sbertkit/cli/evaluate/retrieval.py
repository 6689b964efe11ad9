"""``eval retrieval``."""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sbertkit.cli.completion import COLLECTION
from sbertkit.cli.files import (
    STANDARD_OUTPUT,
    json_option,
    report_option,
    set_or_path,
    targets_of,
    write_json,
    write_report,
    write_rows,
)
from sbertkit.cli.files import write_run as write_run_file
from sbertkit.cli.fusion import mode_options
from sbertkit.cli.options import (
    LoadEncoder,
    encoder_options,
    given_options,
    long_options,
    measure_option,
    quiet_option,
)
from sbertkit.cli.output import print_facts, print_table
from sbertkit.cli.rerank import LoadReranking, rerank_options
from sbertkit.encoder.long_options import LongOptions
from sbertkit.retrieval.modes import DENSE, LEXICAL

if TYPE_CHECKING:
    from sbertkit.data.retrieval import Collection
    from sbertkit.evaluation import RetrievalResult

_SETTINGS = ("pooling", "max_tokens", "dim", "precision", "backend")
_OF_MODELS = ("device", "trust_remote_code")
_OF_ENCODERS = ("model", *_SETTINGS, *_OF_MODELS)


class _Evaluated(NamedTuple):
    """A result, and facts about the system."""

    result: "RetrievalResult"
    system: Mapping[str, Any]


@click.command()
@click.argument("collection", type=COLLECTION)
@encoder_options
@click.option("--index", "index", metavar="DIR", help="Evaluate this index.")
@click.option(
    "--run", "run", metavar="FILE", help="Evaluate this run; COLLECTION may then be a qrels file."
)
@click.option(
    "--split", default="test", show_default=True, metavar="SPLIT", help="Split of the qrels."
)
@measure_option
@click.option(
    "--exclude-self/--keep-self",
    default=None,
    help="Exclude, or keep, documents with the query's own id. By default they are excluded where "
    "their text is the query's, too.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Documents retrieved per query.",
)
@long_options(
    "truncate",
    "What an encoder does with documents longer than its limit; with passages the best one counts.",
)
@mode_options(DENSE)
@rerank_options
@click.option("--write-run", metavar="OUT", help="Write the hits as a TREC run; - prints it.")
@click.option(
    "--per-query", metavar="OUT", help="Write the values per query, tab-separated; - prints it."
)
@json_option
@report_option
@quiet_option
def retrieval(
    collection: str,
    load_encoder: LoadEncoder,
    index: str | None,
    run: str | None,
    split: str,
    measures: tuple[str, ...],
    exclude_self: bool | None,
    depth: int,
    long: LongOptions,
    mode: str,
    fusion: dict[str, Any],
    load_reranking: LoadReranking,
    write_run: str | None,
    per_query: str | None,
    json_path: str | None,
    report_path: str | None,
    quiet: bool,
) -> None:
    """Measure how well an encoder, an index or a run finds relevant documents.

    COLLECTION is a folder in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv) or the
    name of a data set, see data list; with --run a qrels file is enough. An encoder is evaluated
    with exact search; --mode lexical finds documents by their words, without one. The measures are
    trec_eval's; queries without a relevant document are left out and counted.

    \b
    Example:
      sbertkit eval retrieval scifact --model all-MiniLM-L6-v2 --json scifact.json
      sbertkit eval retrieval scifact --index indexes/scifact --measure nDCG@10
      sbertkit eval retrieval scifact --mode hybrid --weight 0.7
      sbertkit eval retrieval scifact --rerank cross-encoder/ms-marco-MiniLM-L6-v2
      sbertkit eval retrieval qrels.txt --run bm25.trec
    """
    from sbertkit.data.retrieval import read_collection
    from sbertkit.evaluation.measures import DEFAULT_MEASURES, Measures
    from sbertkit.evaluation.report.retrieval import retrieval_page, shown_documents

    collection = set_or_path(collection)
    _check_options(click.get_current_context(), Path(collection))
    inputs = (collection, run, index)
    targets = targets_of(json_path, per_query, write_run, report_path, inputs=inputs)
    settings = {"measures": Measures(measures or DEFAULT_MEASURES).names}  # checked at once
    if exclude_self is not None:
        settings["exclude_self"] = exclude_self  # type: ignore[assignment]  # mixed settings
    more: dict[str, Any] = {}
    if run is not None and not Path(collection).is_dir():
        evaluated = _of_run_file(run, collection, settings)
    else:
        read = read_collection(collection, split)  # before the encoder is loaded
        if write_run is not None:
            _check_ids(read, documents=index is None)
        more = {"depth": depth, "long": long, "progress": not quiet, "mode": mode, **fusion}
        more |= load_reranking()
        evaluated = _of_system(read, load_encoder, index, run, {**settings, **more})
    result = evaluated.result
    about = {"collection": collection, **evaluated.system}
    if result.fusion is not None:
        about["fusion"] = str(result.fusion)
    if reranker := more.get("rerank"):
        about["rerank"] = reranker.model
        about["rerank_depth"] = more["rerank_depth"]
        about["rerank_fingerprint"] = reranker.fingerprint
    write_json(targets[0], {**about, **result.to_dict()})
    write_rows(targets[1], ("query", *result.measures), _rows(result))
    write_run_file(targets[2], result.run)
    write_report(
        targets[3],
        lambda: retrieval_page(
            result,
            about,
            _query_texts(collection),
            _document_texts(collection, shown_documents(result)),
        ),
    )
    if STANDARD_OUTPUT not in targets:
        _print(about, result)


def _check_ids(collection: "Collection", *, documents: bool) -> None:
    """Refuses, before anything is encoded, ids that the run to be written cannot hold."""
    from sbertkit.data import read_corpus
    from sbertkit.data.retrieval import check_run_ids

    check_run_ids(collection.queries)
    if documents:
        check_run_ids(document.id for document, _ in read_corpus(collection.folder))


def _query_texts(collection: str) -> Mapping[str, str]:
    """Texts of the queries, for the report; none if only a qrels file was given."""
    from sbertkit.data.retrieval import read_queries

    files = (Path(collection) / f"queries.jsonl{suffix}" for suffix in ("", ".gz"))
    return next((read_queries(file) for file in files if file.is_file()), {})


def _document_texts(collection: str, ids: Set[str]) -> Mapping[str, str]:
    """Texts of these documents; none if only a qrels file was given."""
    from sbertkit.data import read_corpus

    if not Path(collection).is_dir():
        return {}
    documents = (document for document, _ in read_corpus(collection))
    return {document.id: document.text for document in documents if document.id in ids}


def _check_options(context: click.Context, collection: Path) -> None:
    """Refuses options that have no effect together with others."""
    given = given_options(context)
    if context.params["mode"] == LEXICAL and not {"index", "run"} & given:
        for name in given.intersection((*_SETTINGS, "model", "long", "overlap")):
            raise click.UsageError(f"--{name.replace('_', '-')} is of vectors, not --mode lexical")
    of_run = (name for name in _OF_ENCODERS if "rerank" not in given or name not in _OF_MODELS)
    idle = {
        "index": (*_SETTINGS, "long", "overlap"),
        "run": ("index", *of_run, "long", "overlap", "mode", "write_run"),
    }
    for option, others in idle.items():
        for name in given.intersection(others) if option in given else ():
            shown = name.replace("_", "-")
            raise click.UsageError(f"--{shown} and --{option} do not go together")
    if "run" in given and not collection.is_dir():
        for name in given.intersection(("split", "depth", "rerank")):
            raise click.UsageError(f"--{name} needs a folder as COLLECTION")


def _of_run_file(run: str, qrels: str, settings: Mapping[str, Any]) -> _Evaluated:
    from sbertkit.evaluation import evaluate_run
    from sbertkit.evaluation.environment import environment

    about = {"run": run, "environment": environment()}
    return _Evaluated(evaluate_run(run, qrels, **settings), about)


def _of_system(
    collection: "Collection",
    load_encoder: LoadEncoder,
    index: str | None,
    run: str | None,
    settings: Mapping[str, Any],
) -> _Evaluated:
    from sbertkit.evaluation import evaluate_retrieval
    from sbertkit.evaluation.environment import environment

    if run is not None:
        about = {"split": collection.split, "run": run, "environment": environment()}
        return _Evaluated(evaluate_retrieval(run, collection, **settings), about)
    mode = settings["mode"]
    if index is None and mode == LEXICAL:
        about = {"split": collection.split, "mode": mode, "environment": environment()}
        return _Evaluated(evaluate_retrieval(None, collection, **settings), about)
    if index is None:
        encoder = load_encoder()
        about = {
            "split": collection.split,
            "mode": mode,
            "model": encoder.options.model,
            "fingerprint": encoder.fingerprint,
            "long": str(settings["long"]),
        }
        result = evaluate_retrieval(encoder, collection, **settings)
        return _Evaluated(result, {**about, "environment": environment(encoder)})
    from sbertkit.retrieval import SearchIndex

    context = click.get_current_context()
    model = context.params["model"] if "model" in given_options(context) else None
    with SearchIndex.open(
        index,
        model=model,
        device=context.params["device"],
        trust_remote_code=context.params["trust_remote_code"],
        mode=mode,
    ) as opened:
        info = opened.info()
        about = {
            "split": collection.split,
            "mode": mode,
            "index": index,
            "kind": info.kind,
            "model": info.model,
            "fingerprint": info.fingerprint,
            "index_precision": info.precision,
            "long": str(LongOptions(info.long, info.overlap)),
        }
        result = evaluate_retrieval(opened, collection, **settings)
        ran = None if mode == LEXICAL else opened.encoder
        return _Evaluated(result, {**about, "environment": environment(ran)})


def _rows(result: "RetrievalResult") -> list[tuple[object, ...]]:
    queries = next(iter(result.per_query.values()))
    return [
        (query, *(f"{result.per_query[name][query]:.6f}" for name in result.measures))
        for query in queries
    ]


def _print(about: Mapping[str, Any], result: "RetrievalResult") -> None:
    from sbertkit.evaluation.report.retrieval import measure_table, self_match_text

    table = measure_table(result)
    print_table(table.columns, table.rows)
    facts: list[tuple[str, object]] = [
        (name, value)
        for name, value in about.items()
        if not name.endswith("fingerprint") and name != "environment"
    ]
    facts += [
        (
            "queries",
            f"{result.queries:,} evaluated, {len(result.left_out):,} left out, "
            f"{len(result.without_hits):,} without hits",
        ),
        ("self-matches", self_match_text(result)),
        *([] if result.encoded is None else result.encoded.facts().items()),
        *([] if result.reranked is None else result.reranked.pair_facts().items()),
    ]
    print_facts(facts)
