"""Markdown notes of made-up words, and edits of one of their blocks."""

from collections.abc import Iterator
from random import Random

_SYLLABLES = (
    *("ka", "lo", "mi", "ren", "tor", "ves", "al", "quin", "der", "sto", "pha"),
    *("ne", "ri", "bo", "cu", "tal", "em", "ix", "on", "gra"),
)


class Note:
    """The blocks of a note: headings, paragraphs, lists and code.

    Args:
        seed: Decides all of it.
        blocks: How many.
    """

    def __init__(self, seed: int, blocks: int) -> None:
        self.random = Random(seed)
        self.words = ["".join(self.random.choices(_SYLLABLES, k=1 + n % 3)) for n in range(800)]
        makers = [self.heading, self.bullets, self.code, *[self.paragraph] * 6]
        self.blocks = [self.random.choice(makers)() for _ in range(blocks)]

    def some(self, low: int, high: int) -> str:
        return " ".join(self.random.choices(self.words, k=self.random.randint(low, high)))

    def heading(self) -> str:
        return "#" * self.random.randint(1, 3) + " " + self.some(1, 5).capitalize()

    def bullets(self) -> str:
        return "\n".join(f"- {self.some(2, 14)}" for _ in range(self.random.randint(2, 9)))

    def code(self) -> str:
        lines = [f"{self.some(1, 1)} = {self.some(1, 3)}" for _ in range(self.random.randint(2, 9))]
        return "\n".join(["```python", *lines, "```"])

    def sentence(self) -> str:
        return f"{self.some(2, 12).capitalize()}, {self.some(2, 12)}{self.random.choice('..?!')}"

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self.random.randint(1, 7)))

    def edits(self, place: int) -> Iterator[list[str]]:
        """The blocks after each kind of edit of one."""
        before, block, after = self.blocks[:place], self.blocks[place], self.blocks[place + 1 :]
        sentences = block.splitlines() if "\n" in block else block.split(". ")
        joint = "\n" if "\n" in block else ". "
        words = block.split(" ")
        words[self.random.randrange(len(words))] = self.some(1, 1)
        where = self.random.randrange(len(sentences))
        yield [
            *before,
            joint.join([*sentences[:where], self.sentence(), *sentences[where:]]),
            *after,
        ]
        yield [*before, joint.join(sentences[:where] + sentences[where + 1 :]), *after]
        yield [*before, " ".join(words), *after]
        yield [*before, *after]
        yield [*before, self.sentence() + " " + self.sentence(), block, *after]
