"""Discovery finds what a package defines, says nothing of what it only imports, and refuses what it can't name."""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from lakeward.discovery import discover, discover_lazily

PACKAGE = "discovered_by_test_discovery"


class Animal(ABC):
    """The port that the packages of these tests implement."""

    name: str

    @abstractmethod
    def sound(self) -> str: ...


class Package:
    """A package on disk, to which a test adds modules, as a contributor would."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        (directory / "__init__.py").touch()

    def add(self, module: str, source: str) -> None:
        header = f"from {Animal.__module__} import Animal\nfrom abc import abstractmethod\n"
        (self.directory / f"{module}.py").write_text(header + dedent(source))

    def load(self) -> ModuleType:
        importlib.invalidate_caches()
        return importlib.import_module(PACKAGE)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.syspath_prepend(tmp_path)
    # The modules written here import `Animal` from this module, whatever name pytest gave it.
    monkeypatch.setitem(sys.modules, Animal.__module__, sys.modules[__name__])
    yield Package(tmp_path / PACKAGE)
    for module in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[module]


DOG = '''
    class Dog(Animal):
        """Barks."""

        name = "dog"

        def sound(self) -> str:
            return "woof"
'''
CAT = DOG.replace("Dog", "Cat").replace('"dog"', '"cat"')


def test_adding_a_file_adds_a_plug_in_sorted_by_name(package: Package) -> None:
    package.add("a_dog", DOG)
    package.add("z_cat", CAT)
    found = discover(package.load(), Animal)
    assert list(found) == ["cat", "dog"]
    assert found["dog"]().sound() == "woof"


def test_an_empty_package_has_no_plug_ins(package: Package) -> None:
    assert discover(package.load(), Animal) == {}


def test_one_module_may_hold_several_plug_ins(package: Package) -> None:
    package.add("pets", DOG + CAT)
    assert list(discover(package.load(), Animal)) == ["cat", "dog"]


def test_imported_private_abstract_and_foreign_classes_are_not_plug_ins(package: Package) -> None:
    package.add("dog", DOG)
    package.add(
        "more",
        f"""
        from {PACKAGE}.dog import Dog

        class _Hidden(Dog):
            pass

        class Loud(Animal):
            @abstractmethod
            def volume(self) -> int: ...

        class Stone:
            pass
        """,
    )
    assert list(discover(package.load(), Animal)) == ["dog"]


@pytest.mark.parametrize("missing", ['name = "dog"', '"""Barks."""'])
def test_a_plug_in_without_name_or_docstring_is_refused(package: Package, missing: str) -> None:
    package.add("dog", DOG.replace(missing, "pass"))
    with pytest.raises(ValueError, match=r"Dog.* needs a `name` and a docstring"):
        discover(package.load(), Animal)


def test_a_name_is_never_inherited(package: Package) -> None:
    """Else a subclass would silently take its parent's place."""
    package.add("dog", DOG + '\n    class Puppy(Dog):\n        """Barks higher."""\n')
    with pytest.raises(ValueError, match="Puppy"):
        discover(package.load(), Animal)


def test_two_plug_ins_with_one_name_are_refused(package: Package) -> None:
    package.add("dog", DOG)
    package.add("wolf", DOG.replace("Dog", "Wolf"))
    with pytest.raises(ValueError, match=r"Dog.*Wolf.*share the name 'dog'"):
        discover(package.load(), Animal)


def test_a_module_that_fails_to_import_is_not_passed_over(package: Package) -> None:
    package.add("broken", "import there_is_no_such_module\n")
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        discover(package.load(), Animal)


def test_a_plug_in_is_imported_when_it_is_asked_for(package: Package) -> None:
    package.add("dog", DOG)
    package.add("broken", "import there_is_no_such_module\n")
    found = discover_lazily(package.load(), Animal)
    assert list(found) == ["broken", "dog"]
    assert found["dog"]()().sound() == "woof"
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        found["broken"]()


@pytest.mark.parametrize(("module", "content"), [("wolf", DOG), ("dog", DOG + CAT), ("dog", "")])
def test_a_lazy_plug_in_is_called_as_its_module(package: Package, module: str, content: str) -> None:
    package.add(module, content)
    with pytest.raises(ValueError, match=f"has to hold one plug-in with the `name` '{module}'"):
        discover_lazily(package.load(), Animal)[module]()
