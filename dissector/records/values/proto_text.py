"""`.proto` files (proto2, proto3, editions) as descriptors, as far as values need them: messages, enums, fields, maps,
groups of fields, imports. Options, services, extensions and ranges are read past.

protobuf's Python library has no compiler. Types stay as they are written: the library's pool resolves them.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from dissector.core import limits
from dissector.records.values.opened import UnreadableError

if TYPE_CHECKING:  # imported on use: the parser takes time
    from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto
    from lark import Lark

_GRAMMAR: Final = r"""
    start: _statement*
    _statement: syntax | package | import | message | enum | other | ";"
    syntax: ("syntax" | "edition") "=" STRING ";"
    package: "package" NAME ";"
    import: "import" ["public" | "weak"] STRING ";"
    other: ("option" | "extend" | "service") _skipped
    message: "message" NAME "{" _member* "}"
    _member: field | map | oneof | message | enum | ignored | ";"
    field: [LABEL] NAME NAME "=" INT [options] ";"
    map: "map" "<" NAME "," NAME ">" NAME "=" INT [options] ";"
    oneof: "oneof" NAME "{" (field | option | ";")* "}"
    option: "option" _skipped
    ignored: ("option" | "reserved" | "extensions" | "extend") _skipped
    enum: "enum" NAME "{" (symbol | symbol_ignored | ";")* "}"
    symbol: NAME "=" INT [options] ";"
    symbol_ignored: ("option" | "reserved") _skipped
    options: "[" _anything* "]"
    _skipped: _plain* ("{" _nested* "}" ";"? | ";")
    _nested: _plain | ";" | "{" _nested* "}"
    _plain: NAME | INT | STRING | OTHER | LABEL | "[" _anything* "]" | "=" | "<" | ">" | ","
        | "syntax" | "edition" | "package" | "import" | "public" | "weak" | "option" | "extend" | "service"
        | "message" | "map" | "oneof" | "reserved" | "extensions" | "enum"
    _anything: _plain | ";" | "{" _nested* "}"

    LABEL.2: /(?:optional|required|repeated)(?![\w.])/
    NAME: /\.?[A-Za-z_][\w.]*/
    INT: /-?(?:0[xX][0-9a-fA-F]+|\d+)(?![\w.])/
    STRING: /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/
    OTHER: /[-+:()\/.]|\d[\w.+-]*/
    %ignore /\s+|\/\/[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\//
"""
_IMPORT: Final = re.compile(r"""(?:^|[;}])\s*import\s+(?:(?:public|weak)\s+)?["']([^"'\n]+)["'][ \t]*;""", re.MULTILINE)
LONGEST: Final = 1 << 20
"""Characters of a file, at most."""
_SCALARS: Final = (
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message", "bytes",
    "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
)  # fmt: skip
"""Types by their numbers from 1, as descriptors have them; messages and enums are written by name."""
_NO_SCALARS: Final = frozenset(("group", "message", "enum"))
_LABELS: Final = {"optional": 1, "required": 2, "repeated": 3}


@cache
def _parser() -> "Lark":
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", lexer="contextual", maybe_placeholders=True)


def parse_proto(text: str, name: str) -> "FileDescriptorProto":
    """Return the descriptor of a file. Raises `UnreadableError`."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from lark.exceptions import LarkError

    if len(text) > LONGEST:
        raise UnreadableError(f"{name}: more than {LONGEST:,} characters")
    try:
        tree = _parser().parse(text)
    except (LarkError, RecursionError) as error:
        line = getattr(error, "line", None)
        raise UnreadableError(f"{name}: not a .proto file{f', line {line}' if line and line > 0 else ''}") from None
    file = FileDescriptorProto(name=name, syntax="proto2")
    for part in tree.children:
        _add_to_file(file, part)
    return file


def _add_to_file(file: "FileDescriptorProto", part: Any) -> None:
    if part.data == "syntax":
        said = _string(part.children[0])
        file.syntax = said if said in ("proto2", "proto3") else "proto3"
    elif part.data == "package":
        file.package = str(part.children[0])
    elif part.data == "import":
        file.dependency.append(_string(part.children[-1]))
    elif part.data == "message":
        _add_message(file.message_type.add(), part)
    elif part.data == "enum":
        _add_enum(file.enum_type.add(), part)


def _add_message(message: "DescriptorProto", tree: Any, depth: int = 0) -> None:
    if depth > limits.DEFAULT.value_depth:
        raise UnreadableError(f"messages nested more than {limits.DEFAULT.value_depth} levels deep")
    message.name = str(tree.children[0])
    for part in tree.children[1:]:
        match str(part.data):
            case "field":
                _add_field(message, part)
            case "map":
                _add_map(message, part)
            case "oneof":
                message.oneof_decl.add(name=str(part.children[0]))
                for each in part.children[1:]:
                    if each.data == "field":
                        _add_field(message, each, oneof=len(message.oneof_decl) - 1)
            case "message":
                _add_message(message.nested_type.add(), part, depth + 1)
            case "enum":
                _add_enum(message.enum_type.add(), part)


def _add_field(message: "DescriptorProto", tree: Any, oneof: int | None = None) -> None:
    label, type_name, name, number = (None if each is None else str(each) for each in tree.children[:4])
    field = message.field.add(name=name, number=_number(number), label=_LABELS.get(label or "", 1))
    _set_type(field, type_name or "")
    if oneof is not None:
        field.oneof_index = oneof


def _add_map(message: "DescriptorProto", tree: Any) -> None:
    """A map is a repeated message of keys and values (the language guide's "Backwards compatibility")."""
    key, value, name, number = (str(each) for each in tree.children[:4])
    entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
    entry.options.map_entry = True
    for at, (each, type_name) in enumerate((("key", key), ("value", value)), 1):
        _set_type(entry.field.add(name=each, number=at, label=1), type_name)
    message.field.add(name=name, number=_number(number), label=3, type=11, type_name=entry.name)


def _add_enum(enum: "EnumDescriptorProto", tree: Any) -> None:
    enum.name = str(tree.children[0])
    for part in tree.children[1:]:
        if part.data == "symbol":
            enum.value.add(name=str(part.children[0]), number=_number(part.children[1]))
    if len({value.number for value in enum.value}) < len(enum.value):
        enum.options.allow_alias = True


def _set_type(field: Any, name: str) -> None:
    if name in _SCALARS and name not in _NO_SCALARS:
        field.type = _SCALARS.index(name) + 1
    else:
        field.type_name = name


def _number(text: Any) -> int:
    return max(-(1 << 31), min(int(str(text), 0) if not str(text).isdigit() else int(str(text)), (1 << 31) - 1))


def _string(token: Any) -> str:
    return str(token)[1:-1]


def imports_of(text: str) -> list[str]:
    """Return the paths that a file imports, without reading all of it."""
    return [found[1] for found in _IMPORT.finditer(text)]
