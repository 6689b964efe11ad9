"""Random metadata and filters, and what a filter means, written down a second time.

A filter is drawn as a tree of tuples, from which its text is written and its meaning evaluated;
neither uses the parser or the files of the package.
"""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

Path = tuple[str, ...]
Tree = tuple[Any, ...]

KEYS = ("a", "b", "year", "tags", "my field", "a.b", "", "Not", "日本", "`q`", "id", "x-y", "3d")
WORDS = (
    *(
        "a",
        "ab",
        "abc",
        "b",
        "A",
        "é",
        "日本",
        "it's",
        'say "x"',
        "",
        " ",
        "\0",
        "a\0b",
        "\U0001f600",
    ),
    *("en", "de", "Ann", "2020", "2020-01-01", "d7"),
)
NUMBERS = (
    *(
        0,
        1,
        2,
        -1,
        10,
        255,
        256,
        2**53,
        2**53 + 1,
        -(2**53) - 1,
        2**63,
        2**64 + 1,
        10**30,
        -(2**1100),
    ),
    *(0.0, -0.0, 0.5, 1.0, 1.5, -1.5, 0.1, 1e-300, 1.7e308, float(2**53), 1e30),
    *(5, 30, 1999, 2020, 2020.5),
)

texts = st.sampled_from(WORDS) | st.text(max_size=4)
numbers = (
    st.sampled_from(NUMBERS)
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
)
scalars = st.booleans() | texts | numbers
values = st.recursive(
    st.none() | scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)
metadata = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
paths = st.lists(st.sampled_from(KEYS), min_size=1, max_size=2).map(tuple)


def conditions(names: st.SearchStrategy[Path] = paths) -> st.SearchStrategy[Tree]:
    """Conditions on some fields."""
    ordered = st.tuples(st.sampled_from(("<", "<=", ">", ">=")), texts | numbers)
    equal = st.tuples(st.sampled_from(("=", "!=")), scalars)
    several = st.lists(scalars, min_size=1, max_size=4)
    return st.one_of(
        st.tuples(st.just("compare"), names, ordered | equal),
        st.tuples(st.sampled_from(("in", "not in")), names, several),
        st.tuples(st.just("contains"), names, scalars),
        st.tuples(st.just("starts with"), names, texts),
        st.tuples(st.sampled_from(("is null", "is not null")), names),
    )


def trees(names: st.SearchStrategy[Path] = paths) -> st.SearchStrategy[Tree]:
    """Conditions, combined."""
    return st.recursive(
        conditions(names),
        lambda inner: st.one_of(
            st.tuples(st.just("not"), inner),
            st.tuples(
                st.sampled_from(("and", "or")), st.lists(inner, min_size=2, max_size=4).map(tuple)
            ),
        ),
        max_leaves=8,
    )


# --- the text of a filter


def written(tree: Tree, draw: random.Random) -> str:
    """The text of a filter, with any quotes, case and spaces that mean the same."""
    kind = tree[0]
    if kind == "not":
        return f"{_word('not', draw)} {_operand(tree[1], draw)}"
    if kind in ("and", "or"):
        sign = f"{_space(draw)} {_word(kind, draw)} {_space(draw)}"
        return sign.join(_operand(term, draw) for term in tree[1])
    field, rest = _field(tree[1], draw), ""
    if kind == "compare":
        (sign, value) = tree[2]
        return f"{field}{_space(draw)}{sign}{_space(draw)}{_value(value, draw)}"
    if kind in ("in", "not in"):
        comma = f"{_space(draw)},{_space(draw)}"
        rest = f"({comma.join(_value(value, draw) for value in tree[2])})"
    elif kind in ("contains", "starts with"):
        rest = _value(tree[2], draw)
    words = "  ".join(_word(word, draw) for word in kind.split())
    return f"{field} {words} {rest}{_space(draw)}"


def _operand(tree: Tree, draw: random.Random) -> str:
    text = written(tree, draw)
    if tree[0] in ("and", "or") or draw.random() < 0.2:
        return f"({_space(draw)}{text})"
    return text


def _field(path: Path, draw: random.Random) -> str:
    return f"{_space(draw)}.{_space(draw)}".join(_name(key, draw) for key in path)


def _name(key: str, draw: random.Random) -> str:
    bare = re.fullmatch(r"[^\W\d][\w-]*", key) and key.lower() != "not"
    return key if bare and draw.random() < 0.7 else "`" + key.replace("`", "``") + "`"


def _value(value: Any, draw: random.Random) -> str:
    if isinstance(value, bool):
        return _word(str(value).lower(), draw)
    if isinstance(value, str):
        quote = draw.choice("'\"")
        return quote + value.replace(quote, quote + quote) + quote
    return repr(value)


def _word(word: str, draw: random.Random) -> str:
    return draw.choice((word, word.upper(), word.title()))


def _space(draw: random.Random) -> str:
    return draw.choice(("", " ", "\n", "\t "))


# --- what it means


def matches(tree: Tree, document_id: str, fields: Mapping[str, Any]) -> bool:
    """Whether a document matches a filter."""
    kind = tree[0]
    if kind == "not":
        return not matches(tree[1], document_id, fields)
    if kind in ("and", "or"):
        each = [matches(term, document_id, fields) for term in tree[1]]
        return all(each) if kind == "and" else any(each)
    value = document_id if tree[1] == ("id",) else _at(fields, tree[1])
    if kind == "is null":
        return value is None
    if kind == "is not null":
        return value is not None
    if kind == "compare":
        return _compares(value, *tree[2])
    if kind == "in":
        return any(_compares(value, "=", one) for one in tree[2])
    if kind == "not in":
        same_type = any(_type(value) == _type(one) for one in tree[2])
        return same_type and not any(_compares(value, "=", one) for one in tree[2])
    if kind == "starts with":
        return isinstance(value, str) and value.startswith(tree[2])
    assert kind == "contains"
    if isinstance(value, list):
        return any(_compares(one, "=", tree[2]) for one in value)
    return isinstance(value, str) and isinstance(tree[2], str) and tree[2] in value


def is_known(path: Path, documents: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any document has a field, be it null."""
    if path == ("id",):
        return True
    for fields in documents:
        holder = _at(fields, path[:-1])
        if isinstance(holder, Mapping) and path[-1] in holder:
            return True
    return False


def fields_in(tree: Tree) -> set[Path]:
    """The fields that a filter names."""
    if tree[0] == "not":
        return fields_in(tree[1])
    if tree[0] in ("and", "or"):
        return set().union(*(fields_in(term) for term in tree[1]))
    return {tree[1]}


def _at(fields: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(fields, Mapping):
            return None
        fields = fields.get(key)
    return fields


def _type(value: Any) -> type:
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, int | float) else type(value)


def _compares(value: Any, sign: str, other: Any) -> bool:
    if _type(value) != _type(other):
        return False
    return {
        "=": lambda: value == other,
        "!=": lambda: value != other,
        "<": lambda: value < other,
        "<=": lambda: value <= other,
        ">": lambda: value > other,
        ">=": lambda: value >= other,
    }[sign]()
