"""The model card (README.md) of a trained model folder, written from the record of its run."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sbertkit.formatting import UNDEFINED, percent
from sbertkit.training.objectives import OBJECTIVES
from sbertkit.training.report.markdown import (
    base_name,
    code,
    finite,
    listed,
    number,
    prose,
    table,
)

_TAGS = ("sentence-transformers", "sentence-similarity", "feature-extraction", "sbertkit")

_STATED = ("objective", "labels", "pooling", "normalized", "max_tokens")

_READINGS = (
    ("Mean cosine of random pairs", "random_cosine", 3),
    ("Uniformity", "uniformity", 3),
    ("Effective rank", "effective_rank", 1),
)

_SBERTKIT = """\
```python
from sbertkit import Encoder

encoder = Encoder.load("path/to/this/folder")
vectors = encoder.encode(["A man is eating food.", "Somebody has a meal."])
```"""

_SENTENCE_TRANSFORMERS = """\
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
vectors = model.encode(["A man is eating food.", "Somebody has a meal."])
```"""

_CLASSIFY = """\
```python
from sbertkit import classify_pairs

classify_pairs("path/to/this/folder", [("A man is eating food.", "Somebody has a meal.")])
```"""

_ISOTROPY = """\
- Mean cosine of random pairs: near 0 the vectors use all directions, near 1 they lie in a narrow
  cone.
- Uniformity: the log of the mean Gaussian potential of two texts; the lower, the more even.
- Effective rank: about how many directions the vectors spread over, at most their dimension.
- Mean cosine of a label: how similar the two sentences of its pairs are; it should fall from
  entailment over neutral to contradiction."""

_LIMITS = """\
- It was trained on the data above; other languages and other kinds of text were not measured.
- {tokens}
- English NLI sets were written by crowd workers: they carry stereotypes about people, and their
  labels can often be guessed from one sentence alone. A model trained on them may learn both.
- A high cosine does not prove that two texts mean the same. Not for decisions about people.
- The licenses of the base and of the data were not checked; they may bind this model too."""


def model_card(record: Mapping[str, Any]) -> str:
    """The text of README.md, Markdown with the front matter that the Hugging Face hub reads.

    Names that come from the user (paths, splits, labels) are shown as code and can neither form
    Markdown, HTML or YAML nor name folders of this machine; undefined values are ``n/a``.

    Args:
        record: The run as JSON holds it: what was trained, on what, how, and readings before and
            after. Keys that are absent count as undefined.
    """
    sections = (
        ("", _front_matter(record.get("base_model"))),
        (f"# Sentence encoder from {code(_shown_base(record))}", _summary(record)),
        ("## Use", _use(record)),
        ("## Data", _data(record)),
        ("## Settings", _settings(record)),
        ("## Scores on the dev set", _scores(record)),
        ("## Isotropy", _isotropy(record)),
        ("## Limits", _limits(record)),
        ("## Versions", _versions(record)),
    )
    return "\n\n".join("\n\n".join(filter(None, section)) for section in sections) + "\n"


def _front_matter(base: object) -> str:
    lines = ["library_name: sentence-transformers", "pipeline_tag: sentence-similarity", "tags:"]
    lines += [f"- {tag}" for tag in _TAGS]
    if _is_hub_name(base):
        lines.append(f"base_model: {json.dumps(base)}")
    return "\n".join(("---", *lines, "---"))


def _is_hub_name(base: object) -> bool:
    """Whether a base has the form of a hub name."""
    part = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"
    if not isinstance(base, str) or not re.fullmatch(f"(?:{part}/)?{part}", base):
        return False
    return "--" not in base and ".." not in base


def _shown_base(record: Mapping[str, Any]) -> object:
    base = record.get("base_model")
    return base if _is_hub_name(base) else base_name(record.get("base"))


def _summary(record: Mapping[str, Any]) -> str:
    objective = record.get("objective")
    unit = " of length 1" if record.get("normalized") else ""
    how = f": {OBJECTIVES[objective].summary}" if objective in OBJECTIVES else ""
    text = (
        f"It turns a text into a vector of {number(record.get('dim'))} numbers{unit}; texts of "
        f"similar meaning get vectors of a high cosine. sbertkit trained it from "
        f"{code(_shown_base(record))} with {code(record.get('pooling'))} pooling, on "
        f"{number(record.get('examples'))} examples in {number(record.get('steps'))} steps, and "
        f"with the objective {code(objective)}{how}."
    )
    note = record.get("note")
    return f"{text}\n\nNote: {prose(note)}" if note else text


def _use(record: Mapping[str, Any]) -> str:
    parts = [_SBERTKIT, "or, with the same vectors, in sentence-transformers:"]
    parts.append(_SENTENCE_TRANSFORMERS)
    if record.get("head"):
        labels = listed(record.get("labels"))
        parts += [f"The head it was trained with names the label of a pair ({labels}):", _CLASSIFY]
    return "\n\n".join(parts)


def _data(record: Mapping[str, Any]) -> str:
    files = [
        (
            code(base_name(file.get("source"))),
            *(number(file.get(key)) for key in ("rows", "skipped")),
            code(file.get("sha256")),
        )
        for file in record.get("data") or ()
    ]
    counts = [(code(label), number(count)) for label, count in _items(record, "counts")]
    examples = f"Examples trained on, pairs or triplets: {number(record.get('examples'))}."
    if record.get("overlapping"):
        overlapping = number(record["overlapping"])
        examples += f" Rows left out because they are in the dev set: {overlapping}."
    for reason, count in _items(record, "left_out"):
        examples += f" Rows left out, {prose(reason)}: {number(count)}."
    parts = [table(("file", "rows", "skipped", "SHA-256"), files), table(("label", "rows"), counts)]
    return "\n\n".join(filter(None, [*parts, examples]))


def _settings(record: Mapping[str, Any]) -> str:
    rows = {key: record[key] for key in _STATED if record.get(key) is not None}
    rows = rows | dict(_items(record, "settings")) | rows  # what was trained goes before the wish
    rows |= {key: record.get(key) for key in ("steps", "best_step")}
    shown = [(code(key), listed(value)) for key, value in rows.items()]
    speed = ("seconds", "examples_per_second")
    shown += [(code(key), number(record.get(key), 1)) for key in speed]
    return table(("setting", "value"), shown)


def _scores(record: Mapping[str, Any]) -> str:
    dev = record.get("dev")
    if not dev:
        return "There was no dev set: nothing here shows whether the training helped."
    split = "" if dev.get("split") is None else f", split {code(dev['split'])}"
    where = (
        f"{number(dev.get('pairs'))} scored pairs of {code(base_name(dev.get('source')))}{split}; "
        f"SHA-256 {code(dev.get('sha256'))}."
    )
    sides = _sides(record)
    rows = [
        ("Spearman × 100", *(_times_100(side.get("spearman")) for side in sides)),
        ("bootstrap interval", *(_interval(side.get("interval")) for side in sides)),
    ]
    last = "Each interval is that of one encoder over these pairs, not of the difference."
    if record.get("best_step") is not None:
        last += (
            f" The weights are those of step {number(record['best_step'])}, chosen by this score, "
            "which is therefore a little too good for new pairs."
        )
    return "\n\n".join((where, table(("", "before", "after"), rows), _verdict(*sides), last))


def _verdict(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The result of the two scores in one sentence; a worse encoder in bold."""
    first, second = finite(before.get("spearman")), finite(after.get("spearman"))
    if first is None or second is None:
        return "A score is undefined: nothing here shows whether the training helped."
    change = f"{100 * (second - first):+.2f} points"
    if second < first:
        return f"**The trained encoder is worse than its base ({change}).**"
    than = "better than" if second > first else "as good as"
    return f"The trained encoder is {than} its base ({change})."


def _isotropy(record: Mapping[str, Any]) -> str:
    sides = _sides(record)
    rows = [
        (title, *(number(side.get(key), places) for side in sides))
        for title, key, places in _READINGS
    ]
    cosines = [dict(_items(side, "label_cosines")) for side in sides]
    for label in cosines[0] | cosines[1]:
        values = (number(side.get(label), 3) for side in cosines)
        rows.append((f"Mean cosine, {code(label)}", *values))
    return f"{table(('', 'before', 'after'), rows)}\n\n{_ISOTROPY}"


def _limits(record: Mapping[str, Any]) -> str:
    limit = record.get("max_tokens")
    tokens = "No token limit is set: very long texts take much memory and were not measured."
    if limit is not None:
        tokens = f"Longer texts are truncated to {number(limit)} tokens; the rest does not count."
    return _LIMITS.format(tokens=tokens)


def _versions(record: Mapping[str, Any]) -> str:
    rows = [(code(name), code(version)) for name, version in _items(record, "versions")]
    rows.append(("machine", code(record.get("machine"))))
    rows.append(("fingerprint of the base", code((record.get("identity") or {}).get("base"))))
    return table(("what", "version"), rows)


def _sides(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [record.get(side) or {} for side in ("before", "after")]


def _items(record: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    return list((record.get(key) or {}).items())


def _times_100(value: object) -> str:
    return percent(finite(value))


def _interval(interval: Mapping[str, Any] | None) -> str:
    low, high, level = (finite((interval or {}).get(key)) for key in ("low", "high", "level"))
    if low is None or high is None:
        return UNDEFINED
    share = "" if level is None else f" ({100 * level:g} %)"
    return f"{_times_100(low)} to {_times_100(high)}{share}"
