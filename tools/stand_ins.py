"""Lets an engine's own argument parser be imported where torch and its kin are not installed.

The engine's modules come out of its wheel one by one, as they are imported. The packages that the wheel requires and that
are missing here become stand-ins: whatever is asked of them is another stand-in. A module of the engine that cannot live
with that (it asks the GPU something) keeps what it had defined until then. A stand-in that finds its way into an option is
noticed by `parser_dump.py`, so nothing of this can be mistaken for a fact.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sys
import types
import zipfile
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Protocol

IMPORT_NAMES = {"pillow": "PIL", "pyzmq": "zmq", "opencv_python_headless": "cv2", "py_cpuinfo": "cpuinfo"}
# What the requirements require in turn.
BROUGHT_ALONG = {"IPython", "dill", "huggingface_hub", "openai_harmony", "safetensors", "tokenizers", "triton"}
OPERATORS = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "floordiv", "mod", "pow", "neg", "and", "rand")


class StandInType(type(Protocol)):  # type: ignore[misc]  # of Protocol's type, so that engines may mix them with ABCs
    """The type of stand-ins: classes that can be called, indexed, looped over, inherited from and reckoned with."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith(("__", "_is_")) or not is_stand_in(cls):  # `_is_protocol` is asked by `typing` itself
            raise AttributeError(name)
        return make_stand_in(f"{cls.__name__}.{name}")

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if not is_stand_in(cls):
            return super().__call__(*given, **named)
        decorated = len(given) == 1 and not named and isinstance(given[0], types.FunctionType | type)
        return given[0] if decorated and not is_stand_in(given[0]) else cls

    def __iter__(cls) -> Iterator[Any]:
        return iter((cls,)) if is_stand_in(cls) else super().__iter__()

    def __bool__(cls) -> bool:
        return not is_stand_in(cls)

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __setitem__(cls, key: Any, value: Any) -> None:
        pass

    def __len__(cls) -> int:
        return 0

    def __lt__(cls, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __contains__ = __lt__

    def __enter__(cls) -> Any:
        return cls

    def __exit__(cls, *problem: object) -> None:
        pass

    def register(cls, *given: Any, **named: Any) -> Any:
        """Takes registrations of any shape; a stand-in has no use for them."""
        return given[-1] if given else cls

    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()


for operator in OPERATORS:
    setattr(StandInType, f"__{operator}__", lambda cls, *other: cls)


def is_stand_in(value: object) -> bool:
    """Tells whether a value stands in for something that is not installed; a class that inherits from one does not."""
    return isinstance(value, StandInType) and "_stands_in" in value.__dict__


def make_stand_in(name: str) -> Any:
    """Returns a new stand-in."""
    return StandInType(name, (), {"_stands_in": True, "__init__": lambda self, *given, **named: None})


class StandInModule(types.ModuleType):
    """A module in which every name is there, and which remembers who asked for which."""

    __version__ = "99.0.0"
    borrowed: set[tuple[str, str]] = set()  # noqa: RUF012 - the module that asked, and what it got

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        asking = sys._getframe(1).f_globals.get("__name__", "")
        self.borrowed.add((asking, f"{self.__name__}.{name}"))
        setattr(self, name, made := make_stand_in(name))
        return made


class Named(importlib.metadata.Distribution):
    """An installed package, as far as the engines ask for its name and version."""

    def __init__(self, metadata: str) -> None:
        self.text = metadata

    def read_text(self, filename: str) -> str | None:
        """Returns the metadata, the one file there is."""
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """Returns a place where nothing is."""
        return Path("/nonexistent") / path


class Requirements(importlib.metadata.DistributionFinder, importlib.abc.Loader):
    """Finds what the wheel requires, as stand-ins; asked last, after all that is really installed."""

    def __init__(self, package: str, wheel: zipfile.ZipFile) -> None:
        [metadata] = [name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        self.package, self.metadata = package, wheel.read(metadata).decode()
        required = re.findall(r"^Requires-Dist: ([\w.-]+)", self.metadata, re.MULTILINE)
        plain = {re.sub(r"[-.]+", "_", name).lower() for name in required}
        self.names = {IMPORT_NAMES.get(name, name) for name in plain} | BROUGHT_ALONG

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> ModuleSpec | None:
        """Finds a required package and everything below it."""
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in self.names else None

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        """Finds the engine's own metadata, and a very new version of whatever it requires."""
        name = getattr(context, "name", None) or ""
        if name == self.package:
            yield Named(self.metadata)
        elif name.replace("-", "_") in self.names:
            yield Named(f"Name: {name}\nVersion: {StandInModule.__version__}\n")

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Makes the stand-in."""
        return StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Has nothing to run."""


class Lenient(importlib.machinery.SourceFileLoader):
    """Loads a module of the engine; where that fails, what is missing in it is stood in for."""

    failed: dict[str, str] = {}  # noqa: RUF012

    def exec_module(self, module: types.ModuleType) -> None:
        """Runs the module as far as it goes."""
        try:
            super().exec_module(module)
        except Exception as problem:  # noqa: BLE001 - anything may go wrong in code that sees stand-ins
            self.failed[module.__name__] = f"{type(problem).__name__}: {problem}"
            module.__class__ = StandInModule


class WheelModules(importlib.abc.MetaPathFinder):
    """Finds the engine's own modules, and unpacks each when it is asked for."""

    def __init__(self, package: str, wheel: zipfile.ZipFile, folder: Path) -> None:
        self.package = package
        self.wheel = wheel
        self.folder = folder
        self.files = set(wheel.namelist())
        self.folders = {str(parent) for name in self.files for parent in Path(name).parents}

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> ModuleSpec | None:
        """Finds a module, a package, or a folder that is a package without a file of its own."""
        if name.partition(".")[0] != self.package:
            return None
        place = name.replace(".", "/")
        for file, folder in ((f"{place}/__init__.py", [str(self.folder / place)]), (f"{place}.py", None)):
            if file in self.files:
                unpacked = self.wheel.extract(file, self.folder)
                loader = Lenient(name, unpacked)
                return importlib.util.spec_from_file_location(
                    name, unpacked, loader=loader, submodule_search_locations=folder
                )
        if place not in self.folders:
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(self.folder / place)]
        return spec


def stand_in_for(package: str, wheel: zipfile.ZipFile, folder: Path) -> None:
    """Makes the engine's modules importable from here on."""
    sys.meta_path.insert(0, WheelModules(package, wheel, folder))
    sys.meta_path.append(Requirements(package, wheel))
    sys.modules.setdefault("regex", re)  # patterns in parsers need answers, and the standard library gives the same ones
