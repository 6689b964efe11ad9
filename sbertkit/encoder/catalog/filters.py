"""The encoders of the table that suit what is asked for."""

import re
from collections.abc import Iterable

from sbertkit.arguments import did_you_mean, whole_number
from sbertkit.encoder.catalog.models import (
    DOMAINS,
    KNOWN_MODELS,
    LANGUAGE_NAMES,
    TASKS,
    KnownModel,
)
from sbertkit.encoder.prompts import last_part
from sbertkit.errors import InputError, InputTypeError

_COUNT = re.compile(r"([0-9]{1,30}(?:\.[0-9]+)?)([KMB]?)")
_ALIASES = {"nb": "no", "fil": "tl", "filipino": "tl"}
"""Other codes and names of languages that the table has."""
_POWERS = {"": 0, "K": 1, "M": 2, "B": 3}


def known_models(
    *,
    language: str | None = None,
    domain: str | None = None,
    max_parameters: int | str | None = None,
    length: int | None = None,
    task: str | None = None,
    ready: bool | None = None,
) -> tuple[KnownModel, ...]:
    """Published encoders that suit; those that give vectors of texts first, then the smaller.

    Args:
        language: Of the texts: an ISO 639 code or an English name, such as ``zh`` or ``chinese``.
        domain: What they are about, by the names of `DOMAINS`.
        max_parameters: A number, or a text such as ``110M``.
        length: Tokens that a text needs, special ones counted.
        task: What it was pretrained with, by the names of `TASKS`.
        ready: True for those trained to give vectors of texts, False for bases to be tuned.

    Raises:
        InputError: An unknown language, domain or task, or no number.
        InputTypeError: A value of the wrong type.
    """
    code = None if language is None else _language(language)
    _check_name("domain", domain, DOMAINS)
    _check_name("task", task, TASKS)
    most = None if max_parameters is None else _count(max_parameters)
    if length is not None:
        length = whole_number("length", length)
    return tuple(
        one
        for one in KNOWN_MODELS
        if (code is None or code in one.languages)
        and domain in (None, one.domain)
        and (most is None or one.parameters <= most)
        and (length is None or one.max_tokens is None or length <= one.max_tokens)
        and (task is None or task in one.tasks)
        and ready in (None, one.ready)
    )


def find_known(name: str) -> KnownModel:
    """The entry of a model.

    Args:
        name: Its name on the hub, or the last part of it.

    Raises:
        InputError: The table has no such model.
    """
    for one in KNOWN_MODELS:
        if name.lower() in (one.name.lower(), last_part(one.name).lower()):
            return one
    names = [one.name for one in KNOWN_MODELS]
    near = did_you_mean(name, names) or did_you_mean(name, map(last_part, names))
    raise InputError(
        f"the table of models has no {name!r}{near or '; list them with: sbertkit models'}"
    )


def _language(given: str) -> str:
    """The code of a language that is given by its code or name."""
    _check_text("language", given)
    word = given.strip().lower()
    by_name = {name: code for code, name in LANGUAGE_NAMES.items()}
    # What follows a hyphen is a script or a country, which no entry tells apart.
    code = by_name.get(word) or re.split("[-_]", word)[0]
    code = _ALIASES.get(code, code)
    known = {one for model in KNOWN_MODELS for one in model.languages}
    if code in known:
        return code
    near = did_you_mean(word, by_name)
    raise InputError(
        f"the table of models has no encoder for the language {given!r}"
        f"{near or '; give an ISO 639 code or an English name, such as zh or chinese'}"
    )


def _check_name(what: str, given: str | None, known: Iterable[str]) -> None:
    if given is None:
        return
    _check_text(what, given)
    if given in known:
        return
    raise InputError(
        f"there is no {what} {given!r}{did_you_mean(given, known)}; known are {', '.join(known)}"
    )


def _check_text(what: str, given: object) -> None:
    if not isinstance(given, str):
        raise InputTypeError(f"{what} must be a str, not {given!r}")


def _count(given: int | str) -> int:
    """A number of parameters: a whole number, or a text such as ``110M``."""
    if not isinstance(given, str):
        return whole_number("max_parameters (--max-params)", given)
    found = _COUNT.fullmatch(given.strip().upper().replace(",", ""))
    if found is None:
        raise InputError(
            "max_parameters (--max-params) must be a number such as 110M or 1.5B, not "
            f"{given!r:.50}"
        )
    number, power = found.groups()
    return whole_number(
        "max_parameters (--max-params)", int(float(number) * 1000 ** _POWERS[power])
    )
