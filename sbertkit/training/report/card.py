"""The model card (README.md) of a trained model folder, written from the record of its run."""

import re
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader

from sbertkit.formatting import UNDEFINED, percent
from sbertkit.training.data_forms import FORMS
from sbertkit.training.objectives import OBJECTIVES, Objective
from sbertkit.training.pretraining.tasks import TASKS
from sbertkit.training.report import markdown
from sbertkit.training.report.markdown import base_name, finite

_TEMPLATE = "model_card.md"
_STATED = ("objective", "labels", "pooling", "normalized", "max_tokens")
"""What was trained, which goes before what the settings asked for."""


def model_card(record: Mapping[str, Any]) -> str:
    """The text of README.md, Markdown with the front matter that the Hugging Face hub reads.

    Names that come from the user (paths, splits, labels) are shown as code and can neither form
    Markdown, HTML or YAML nor name folders of this machine; undefined values are ``n/a``.

    Args:
        record: The run as JSON holds it: what was trained, on what, how, and snapshots before and
            after. Keys that are absent count as undefined.
    """
    hub_name = record.get("base_model")
    hub_name = hub_name if _is_hub_name(hub_name) else None
    objectives = _objectives(str(record.get("objective")))
    before, after = (record.get(side) or {} for side in ("before", "after"))
    cosines = [side.get("label_cosines") or {} for side in (before, after)]
    return (
        environment()
        .get_template(_TEMPLATE)
        .render(
            run=record,
            reranks=record.get("task") == "rerank",
            hub_name=hub_name,
            base=hub_name or base_name(record.get("base")),
            objectives=objectives,
            form=FORMS.get(str(record.get("form"))),
            sets=_sets(record),
            retrieval=(record.get("dev") or {}).get("measure") == "ndcg",
            settings=_settings(record),
            before=before,
            after=after,
            label_cosines={
                label: [side.get(label) for side in cosines] for label in cosines[0] | cosines[1]
            },
            verdict=_verdict(before, after, _noun(record)),
            fingerprint=(record.get("identity") or {}).get("base"),
        )
    )


def _objectives(names: str) -> list[type[Objective]]:
    """The objectives of those names, which have commas between them, as far as they are known."""
    known: dict[str, type[Objective]] = {**OBJECTIVES, **TASKS}
    return [known[name] for name in names.split(",") if name in known]


def environment() -> Environment:
    """The templates of cards, with filters that make text safe in Markdown."""
    # An HTML escape would not.
    made = Environment(  # noqa: S701
        loader=PackageLoader("sbertkit.training.report", "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name in ("code", "prose", "number", "listed", "base_name"):
        made.filters[name] = getattr(markdown, name)
    made.filters |= {"times_100": _times_100, "interval": _interval}
    return made


def _is_hub_name(base: object) -> bool:
    """Whether a base has the form of a hub name."""
    part = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"
    if not isinstance(base, str) or not re.fullmatch(f"(?:{part}/)?{part}", base):
        return False
    return "--" not in base and ".." not in base


def _sets(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The record of each of several sets, with its form and objective."""
    return [
        {
            **one,
            "known_form": FORMS.get(str(one.get("form"))),
            "known_objective": OBJECTIVES.get(str(one.get("objective"))),
        }
        for one in record.get("sets") or ()
    ]


def _settings(record: Mapping[str, Any]) -> dict[str, Any]:
    stated = {key: record[key] for key in _STATED if record.get(key) is not None}
    asked = dict(record.get("settings") or {})
    done = {key: record.get(key) for key in ("steps", "best_step")}
    return stated | asked | stated | done


def _noun(record: Mapping[str, Any]) -> str:
    return "re-ranker" if record.get("task") == "rerank" else "encoder"


def _verdict(before: Mapping[str, Any], after: Mapping[str, Any], noun: str) -> str:
    """The result of the two scores in one sentence; a worse model in bold."""
    first, second = (
        finite(side.get("spearman" if side.get("ndcg") is None else "ndcg"))
        for side in (before, after)
    )
    if first is None or second is None:
        return "A score is undefined: nothing here shows whether the training helped."
    change = f"{100 * (second - first):+.2f} points"
    if second < first:
        return f"**The trained {noun} is worse than its base ({change}).**"
    than = "better than" if second > first else "as good as"
    return f"The trained {noun} is {than} its base ({change})."


def _times_100(value: object) -> str:
    return percent(finite(value))


def _interval(interval: Mapping[str, Any] | None) -> str:
    low, high, level = (finite((interval or {}).get(key)) for key in ("low", "high", "level"))
    if low is None or high is None:
        return UNDEFINED
    share = "" if level is None else f" ({100 * level:g} %)"
    return f"{_times_100(low)} to {_times_100(high)}{share}"
