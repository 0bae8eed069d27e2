"""The stubs and the module say the same."""

import ast
import inspect
import operator
import pathlib

import pygpumem._native as gpumem

TREE = ast.parse((pathlib.Path(__file__).parents[1] / "python/pygpumem/_native.pyi").read_text())
# What Python gives every class, or what only the stubs need a name for.
ORDINARY = set(dir(object)) | {"__module__", "__doc__", "__weakref__", "__dlpack_c_exchange_api__"}
# Operators only raise. The stubs leave them out, so that type checkers refuse them.
OPERATORS = {f"__{name}__" for name in vars(operator) if f"__{name}__" in vars(operator)}
OPERATORS |= {f"__r{name[2:]}" for name in OPERATORS} | {"__divmod__", "__rdivmod__", "__and__", "__or__", "__rand__", "__ror__"}
OPERATORS -= {"__getitem__", "__setitem__", "__delitem__", "__len__", "__contains__", "__index__", "__call__"}


def names(arguments):
    """Names of parameters, with a mark for those that have a default."""
    given = arguments.posonlyargs + arguments.args
    plain = len(given) - len(arguments.defaults)
    found = [(each.arg, at >= plain) for at, each in enumerate(given)]
    found += [(each.arg, default is not None) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    rest = [("*" + arguments.vararg.arg, False)] if arguments.vararg else []
    return sorted(each for each in found + rest if each[0] != "self")


def of_module(function):
    kinds = inspect.Parameter
    found = []
    for each in inspect.signature(function).parameters.values():
        if each.name in ("self", "$self", "slf"):
            continue
        mark = "*" if each.kind is kinds.VAR_POSITIONAL else ""
        found.append((mark + each.name, each.default is not kinds.empty))
    return sorted(found)


def test_module_and_stubs_have_the_same_names():
    stubs = {node.name for node in TREE.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    stubs |= {node.target.id for node in TREE.body if isinstance(node, ast.AnnAssign)}
    module = {name for name in vars(gpumem) if not name.startswith("_")}
    assert {name for name in stubs if not name.startswith("_")} == module


def test_functions_take_the_same():
    for node in TREE.body:
        if isinstance(node, ast.FunctionDef):
            assert names(node.args) == of_module(getattr(gpumem, node.name)), node.name


def test_classes_have_the_same():
    for node in TREE.body:
        own = getattr(gpumem, getattr(node, "name", ""), None)
        own = type(gpumem.gpus) if getattr(node, "name", "") == "_Gpus" else own
        if not isinstance(node, ast.ClassDef) or own is None or issubclass(own, Exception):
            continue
        stubs = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        module = set(vars(own)) - ORDINARY - OPERATORS - {"__delitem__"}
        assert {name for name in stubs if name != "__new__"} - ORDINARY == module, node.name
        for name, stub in stubs.items():
            is_property = any(getattr(mark, "id", "") == "property" for mark in stub.decorator_list)
            there = vars(own).get(name)
            assert is_property == isinstance(there, type(vars(gpumem.Device)["name"])), name
            if not is_property and not name.startswith("__"):
                assert names(stub.args) == of_module(there), f"{node.name}.{name}"


def test_everything_public_says_what_it_does():
    """`help(pygpumem)` has a sentence for each name."""
    silent = []
    for name, found in vars(gpumem).items():
        if name.startswith("_"):
            continue
        silent += [] if found.__doc__ else [name]
        if isinstance(found, type) and not issubclass(found, Exception):
            members = {each: value for each, value in vars(found).items() if not each.startswith("_")}
            silent += [f"{name}.{each}" for each, value in members.items() if not value.__doc__]
    assert not silent
