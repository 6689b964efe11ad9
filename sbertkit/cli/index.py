"""``index``, ``info`` and ``verify``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sbertkit.cli.changes import print_changes
from sbertkit.cli.completion import INDEX, PATH
from sbertkit.cli.fusion import weight_text
from sbertkit.cli.lexical import lexical_options
from sbertkit.cli.options import (
    LoadEncoder,
    encoder_options,
    given_options,
    long_options,
    no_progress_option,
    quiet_option,
    resume_option,
    wait_option,
)
from sbertkit.cli.output import print_facts, print_json, print_line
from sbertkit.cli.read_options import read_options
from sbertkit.cli.recall import (
    factory_option,
    memory_option,
    print_tried,
    recall_text,
    tuning_queries_option,
)
from sbertkit.encoder.long_options import DEFAULT_LONG, LongOptions
from sbertkit.errors import DamagedIndex
from sbertkit.formatting import counted, listed
from sbertkit.index.kinds import AUTO_FLAT_LIMIT, NAMES
from sbertkit.progress import say
from sbertkit.retrieval.modes import HYBRID

if TYPE_CHECKING:
    from sbertkit.data import ReadOptions
    from sbertkit.retrieval import FieldInfo
    from sbertkit.retrieval.lexical_index import Lexical
    from sbertkit.retrieval.results import LexicalInfo


_MAX_LISTED = 12
"""Fields of the metadata that are shown."""
_FIXED = {
    *("kind", "recall", "memory", "queries", "clusters", "factory"),
    *("with_encoder", "long", "overlap"),
    *("lexical", "language", "k1", "b", "weight"),
}
"""Parameters that a change keeps."""

_OF_MODEL = {"pooling", "max_tokens", "dim", "precision", "backend"}
"""Parameters of the encoder that an update is given."""

_LARGE_SHARE = 10
"""How many times the size of an index its encoder has before that is pointed out."""


@click.command()
@click.argument("corpus", type=PATH)
@click.option("-o", "--output", metavar="DIR", help="By default, indexes/<name of the corpus>.")
@encoder_options
@click.option(
    "--kind",
    type=click.Choice(("auto", *NAMES)),
    default="auto",
    show_default=True,
    help=f"auto: flat up to {AUTO_FLAT_LIMIT:,} vectors, then ivfpq.",
)
@click.option(
    "--recall",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.95,
    show_default=True,
    help="Recall@10 that a search is to reach; 1 is exhaustive search.",
)
@memory_option
@tuning_queries_option
@click.option(
    "--with-encoder/--without-encoder",
    default=None,
    help="Bundle the encoder into DIR, so that a search needs neither the model nor torch.  "
    "[default: with it, if it can be exported]",
)
@click.option("--clusters", type=click.IntRange(min=1), help="Clusters of kinds ivf and ivfpq.")
@factory_option
@click.option(
    "--vectors",
    metavar="FILE",
    help="Given vectors: .npy in the order of the documents, or .parquet with columns id and "
    "vector. Only a few texts are encoded, to compare.",
)
@long_options(
    DEFAULT_LONG,
    "Texts longer than the model's limit: a vector for each passage, of which the best counts; "
    "truncate them; or the mean of the vectors of their passages.",
)
@lexical_options(True, "Make the documents searchable by their words, too.")
@click.option(
    "--weight",
    type=click.FloatRange(0, 1),
    help="What vectors count in a search by vectors and words; by default measured with parts of "
    "documents.",
)
@click.option("--replace", is_flag=True, help="Replace the index of another corpus that is at DIR.")
@click.option(
    "--update",
    is_flag=True,
    help="Update the existing index: encode new and changed documents, delete missing ones.",
)
@read_options
@resume_option
@wait_option
@quiet_option
def index(
    corpus: str,
    output: str | None,
    load_encoder: LoadEncoder,
    kind: str,
    recall: float,
    memory: str | None,
    queries: str | None,
    clusters: int | None,
    factory: str | None,
    with_encoder: bool | None,
    vectors: str | None,
    long: LongOptions,
    lexical: "Lexical",
    weight: float | None,
    replace: bool,
    update: bool,
    read: "ReadOptions",
    resume: bool,
    quiet: bool,
) -> None:
    """Build a search index over CORPUS.

    CORPUS is text (one document per line), JSONL, TSV (id, tab, text), CSV or Parquet, each also
    gzipped, a BEIR folder, a folder of .txt and .md files, or - for standard input. An existing
    index is replaced in one step, or updated with --update.

    \b
    Example:
      sbertkit index corpus.txt
      sbertkit index articles.jsonl.gz -o indexes/articles --recall 0.99 --memory 2GB
      sbertkit index articles.jsonl.gz -o indexes/articles --update
    """
    from rich.filesize import decimal

    from sbertkit.retrieval import BuildOptions, SearchIndex, default_index_path
    from sbertkit.retrieval.default_path import check_same_corpus
    from sbertkit.retrieval.manifest import is_index

    if output is None and corpus == "-":
        raise click.UsageError("standard input has no name: give the index folder with -o DIR")
    if weight is not None and lexical is False:
        raise click.UsageError("--weight goes with no --no-lexical")
    if update and (resume or vectors is not None):
        raise click.UsageError("--update goes with neither --resume nor --vectors")
    path = str(default_index_path(corpus) if output is None else output)
    if output is not None and not replace and not update:
        check_same_corpus(path, corpus)
    if update and is_index(Path(path)):
        _update(path, corpus, load_encoder, read, quiet)
        return
    with SearchIndex.build(
        corpus,
        load_encoder,
        path,
        kind=kind,
        recall=recall,
        memory=memory,
        queries=queries,
        read=read,
        with_encoder=with_encoder,
        resume=resume,
        progress=not quiet,
        long=long.mode,
        lexical=lexical,
        options=BuildOptions(clusters, factory, vectors, overlap=long.overlap, weight=weight),
    ) as built:
        facts = built.info()
    rest = facts.bytes - facts.encoder_bytes
    size = decimal(rest)
    if facts.encoder_bytes:
        size += f", and its encoder, {decimal(facts.encoder_bytes)}"
    if with_encoder is None and facts.encoder_bytes > _LARGE_SHARE * rest:
        size += ": --without-encoder leaves it out"
    passages = f", {facts.vectors:,} passages" if facts.vectors > facts.documents else ""
    print_line(
        f"{counted(facts.documents, 'document')}{passages} in {path} "
        f"({facts.kind}, {facts.dim} dimensions, {size})"
    )
    if facts.measured is not None:
        print_line(recall_text(facts.measured))
    if facts.lexical is not None:
        detected = "" if "language" in given_options(click.get_current_context()) else ", detected"
        print_line(f"words: {_words_text(facts.lexical)}{detected}")
        print_line(f"hybrid search: {weight_text(facts.lexical.weight)}")


def _words_text(lexical: "LexicalInfo") -> str:
    """A lexical index in a line."""
    from rich.filesize import decimal

    return (
        f"language {lexical.language}, k1 {lexical.k1:g}, b {lexical.b:g}, {decimal(lexical.bytes)}"
    )


def _update(
    path: str, corpus: str, load_given: LoadEncoder, read: "ReadOptions", quiet: bool
) -> None:
    """Updates an index with the encoder it names, or the one that options name."""
    from sbertkit.retrieval import change_documents
    from sbertkit.retrieval.manifest import read_manifest
    from sbertkit.retrieval.opening import check_encoder, load_encoder

    context = click.get_current_context()
    given = given_options(context)
    fixed = sorted(given & _FIXED)
    if fixed:
        option = fixed[0].replace("_", "-")
        raise click.UsageError(
            f"--update keeps what the index was built with: leave --{option} out, or rebuild it "
            "without --update"
        )
    root = Path(path).absolute()
    loaded = None
    if "model" in given:
        loaded = load_given()  # and compared even if nothing is to be encoded
        check_encoder(root, read_manifest(root).encoder, loaded)
    elif of_model := sorted(given & _OF_MODEL):
        option = of_model[0].replace("_", "-")
        raise click.UsageError(
            f"--{option} needs --model: without it the index's own encoder is taken as it is"
        )
    where = {name: context.params[name] for name in ("device", "trust_remote_code")}
    changes = change_documents(
        path,
        corpus,
        lambda view: loaded or load_encoder(root, view.manifest, **where),
        mode="update",
        read=read,
        progress=not quiet,
    )
    print_changes(changes, path)


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
)
@no_progress_option
def info(directory: str, output_format: str) -> None:
    """Describe the index DIR.

    \b
    Example:
      sbertkit info indexes/corpus
    """
    from sbertkit.retrieval import index_fields, index_info

    described = index_info(directory)
    facts = described.to_dict()
    fields: dict[str, FieldInfo] = {}
    try:
        fields = index_fields(directory)
    except DamagedIndex as error:
        say(f"the fields are not shown: {error}")
    if output_format == "json":
        by_name = {
            name: {"types": field.types, "share": field.share} for name, field in fields.items()
        }
        print_json({**facts, "fields": by_name})
    else:
        facts["fields"] = listed(
            [f"{name} ({field})" for name, field in fields.items()], _MAX_LISTED
        )
        facts["memory"] = described.memory or "any"
        lexical = described.lexical
        facts["lexical"] = "left out" if lexical is None else _words_text(lexical)
        if lexical is not None:
            facts["weight"] = weight_text(lexical.weight)
            if described.default_mode != HYBRID:
                facts["default_mode"] = (
                    f"{described.default_mode}, since the words are by the rules of another "
                    f"version: sbertkit compact {directory} --lexical makes them again"
                )
        measured = described.measured
        facts["measured"] = (
            "not measured; searches compare all vectors"
            if measured is None
            else recall_text(measured)
        )
        if described.kind == "flat":
            facts["measured"] = "1, by exhaustive search"
        names = {
            "recall": "requested recall",
            "memory": "requested memory",
            "measured": "measured recall",
            "deleted": "deleted, not compacted",
            "encoder_bytes": "bytes of the bundled encoder",
            "long": "long texts",
            "vectors": "vectors, of passages",
            "lexical": "words",
            "weight": "hybrid search",
            "default_mode": "default mode",
        }
        print_facts((names.get(name, name), value) for name, value in facts.items())
        if measured is not None:
            print_tried(measured)


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@no_progress_option
@click.pass_context
def verify(context: click.Context, directory: str) -> None:
    """Check every file of the index DIR.

    Each file is compared with its SHA-256; the exit status is 1 if anything is wrong.

    \b
    Example:
      sbertkit verify indexes/corpus
    """
    from sbertkit.retrieval import verify_index

    problems = verify_index(directory)
    for problem in problems:
        print_line(f"{problem.file}: {problem.reason}")
    if problems:
        say(f"repair it with: sbertkit repair {directory}")
        context.exit(1)
    print_line("no problems found")
