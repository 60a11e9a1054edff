"""What both desks do alike: one state for every page that is open, and what is wrong is said beside its field.

There is one desk per program: a page that is loaded again, or a second one, shows the same.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from dpsc import checks
from dpsc.answers import words
from dpsc.errors import DpscError, Parameter
from dpsc.web.work import File, Reader

T = TypeVar("T")
_WHOLE = re.compile(r"\d{1,12}|\d{1,3}([, '\u00a0\u202f]\d{3}){1,3}", re.ASCII)  # 5000, 5,000, 5 000


class Desk:
    """A desk; each step changes it as a whole, and says next to which field something is wrong.

    Parameters
    ----------
    folder : Path
        Private; what was dropped on a page is kept here until the program ends.
    reader : Reader, optional
        Reads files in a process that can be ended; without it they are read here.

    Attributes
    ----------
    labels : mapping
        The names of parameters as the fields of the page are called.
    problems : dict
        What is wrong, by the name of the field that it is about.
    """

    labels: ClassVar[Mapping[str, str]] = {}

    def __init__(self, folder: Path, reader: Reader | None = None) -> None:
        self.folder, self.reader = folder, reader
        self.problems: dict[str, str] = {}
        self._lock = threading.RLock()
        self._changes = 0

    def read(self, step: Callable[..., T], *arguments: object, **options: Any) -> T:
        """Return what a function that reads a file returns; what it holds may be wrong in any way."""
        read = step if self.reader is None else partial(self.reader, step)
        return read(*arguments, **options)

    @property
    def version(self) -> tuple[object, ...]:
        """Something that differs as soon as a page must show something else."""
        return (self._changes,)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let one step at a time change the desk."""
        with self._lock:
            try:
                yield
            finally:
                self._changes += 1

    @contextmanager
    def about(self, field: str, *files: File | None) -> Iterator[None]:
        """Keep what is wrong beside the field that it is about; files have the names under which they were dropped."""
        self.problems.pop(field, None)
        try:
            yield
        except DpscError as problem:
            self._tell(*self.explained(problem, field), files)
        except OSError as problem:
            self._tell(field, problem.strerror or type(problem).__name__, files)

    def explained(self, problem: DpscError, field: str) -> tuple[str, str]:
        """Return the field that an error is about, and the library's words with the names of the page's fields."""
        return field, problem.text(self.named)

    def named(self, parameter: Parameter) -> str:
        """Write a parameter as the field of the page that sets it."""
        label = self.labels.get(parameter.name)
        if label is None:
            return parameter.python
        return f"“{label}” {parameter.typed}".rstrip()

    def _tell(self, field: str, text: str, files: tuple[File | None, ...]) -> None:
        known = [file for file in files if file is not None]
        for file in known:
            text = text.replace(str(file.path), file.name)
        text = text.replace(f"{self.folder}/", "")
        with self.changing():
            self.problems[field] = text if text.startswith(tuple(each.name for each in known)) else words.sentence(text)


def averages(text: str) -> int:
    """Return how many people a target is the average of, as it was written into a field.

    Examples
    --------
    >>> averages("5000"), averages("5,000"), averages("5 000")
    (5000, 5000, 5000)
    """
    written = text.strip()
    number = int(re.sub(r"\D", "", written)) if _WHOLE.fullmatch(written) else written
    return checks.whole_number("averages", number, at_least=1)
