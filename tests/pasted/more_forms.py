"""Writers of bytes in further forms, and of what logs, chats and trackers put around lines. None uses the code under test.

Each is tried with a few frames; those of `forms` with any.
"""

# ruff: noqa: E501  # what people paste has long lines

import html
import json
import textwrap
from collections.abc import Callable
from typing import Final
from urllib.parse import quote_plus

from tests.pasted.forms import Writer, before_lines, dump, shown, signed


def rows(data: bytes, width: int) -> list[bytes]:
    return [data[at : at + width] for at in range(0, len(data), width)]


def without_offsets(group: int, between: str, *, width: int = 16, bars: str = "{}") -> Writer:
    """Rows of hex in groups, and their text behind it; no offsets."""

    def write(data: bytes) -> str:
        first = len(data[:width].hex(" ", -group))
        return "\n".join(
            f"{row.hex(' ', -group):<{first}}{between}{bars.format(shown(row))}" for row in rows(data, width)
        )

    return write


def hanging(text: str, width: int, indent: str) -> str:
    """Lines broken at a column, wherever it is, as logs wrap them: what follows is indented."""
    made = []
    for line in text.split("\n"):
        made.append(line[:width])
        made += [indent + line[at : at + width - len(indent)] for at in range(width, len(line), width - len(indent))]
    return "\n".join(made)


def broken(line: str, width: int, indent: str) -> Writer:
    """A line of a log, wrapped; `line` has the fields that follow."""

    def write(data: bytes) -> str:
        text = line.format(
            hex=data.hex(" "), plain=data.hex(), numbers=", ".join(map(str, data)), go=" ".join(map(str, data)),
            erlang=",".join(map(str, data)), signed=", ".join(signed(data)), prefixed=", ".join(f"0x{b:02x}" for b in data),
            escapes="".join(f"\\x{b:02x}" for b in data), python=repr(data),
        )  # fmt: skip
        return hanging(text, width, indent)

    return write


def quoted(item: str, separator: str = ", ") -> Writer:
    """A list of numbers in quotes."""
    return lambda data: "[" + separator.join(item.format(b) for b in data) + "]"


def each(item: str, separator: str = "") -> Writer:
    return lambda data: separator.join(item.format(b) for b in data)


def gdb_cell(byte: int) -> str:
    names = {
        0: "\\000",
        7: "\\a",
        8: "\\b",
        9: "\\t",
        10: "\\n",
        11: "\\v",
        12: "\\f",
        13: "\\r",
        0x27: "\\'",
        0x5C: "\\\\",
    }
    shown_as = names.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
    return f"{byte - 256 if byte > 127 else byte} '{shown_as}'"


def addresses(cell: Callable[[int], str], between: str = "\t") -> Writer:
    """What a debugger prints of memory, 8 bytes a row."""
    return lambda data: "\n".join(
        f"0x{0x7FFF00000000 + 8 * number:x}:{between}" + between.join(map(cell, row))
        for number, row in enumerate(rows(data, 8))
    )


def erlang_text(data: bytes) -> str:
    """What `~p` of Erlang prints of a binary that has text in it."""
    items: list[str] = []
    for byte in data:
        if 0x20 <= byte < 0x7F and byte not in b'"\\':
            if items and items[-1].startswith('"'):
                items[-1] += chr(byte)
            else:
                items.append('"' + chr(byte))
        else:
            items.append(str(byte))
    return "<<" + ",".join(item + '"' if item.startswith('"') else item for item in items) + ">>"


def vim(data: bytes) -> str:
    return "".join(
        chr(b) if 0x20 <= b < 0x7F else f"^{chr(b ^ 64)}" if b < 32 or b == 127 else f"<{b:02x}>" for b in data
    )


def xml(item: str) -> Writer:
    return lambda data: "".join(
        chr(b) if 0x20 <= b < 0x7F and b not in b"<>&" else item.format(b) for b in data
    )  # fmt: skip


MORE_FORMS: Final[dict[str, Writer]] = {
    # Rows without offsets.
    "groups of 4 and text": without_offsets(2, "  "),
    "groups of 4 and text behind a tab": without_offsets(2, "\t"),
    "groups of 4 and text in bars": without_offsets(2, " ", bars="|{}|"),
    "groups of 4, 8 bytes a row": without_offsets(2, "  ", width=8),
    "groups of 8 and text": without_offsets(4, "   "),
    "one group and text": without_offsets(16, "  "),
    # Broken in the middle of a number, and indented.
    "wrapped numbers": broken("2026-11-26 10:15:30 DEBUG sent [{numbers}]", 80, "    "),
    "wrapped numbers of Go": broken("DEBUG sent [{go}]", 70, "        "),
    "wrapped numbers of Java": broken("bytes=[{signed}]", 66, "      "),
    "wrapped numbers of Erlang": broken("<<{erlang}>>", 72, "  "),
    "wrapped hex": broken("2026-11-26 10:15:30 DEBUG sent {plain}", 79, "    "),
    "wrapped hex with blanks": broken("2026-11-26 10:15:30 DEBUG sent {hex}", 80, "  "),
    "wrapped hex behind a bar": broken("DEBUG sent {plain}", 75, "  | "),
    "wrapped 0x": broken("send {prefixed}", 72, "   "),
    "wrapped escapes": broken("DEBUG sending {escapes}", 75, "    "),
    "wrapped Python": broken("DEBUG sending {python}", 72, "    "),
    # In quotes each.
    "decimals in quotes": quoted('"{}"'),
    "decimals in quotes of Perl": quoted("'{}'", ",\n  "),
    "decimals in quotes without blanks": quoted('"{}"', ","),
    "0x in quotes": quoted('"0x{:02x}"'),
    "binary in quotes": quoted('"{:08b}"'),
    "octal in quotes": quoted('"{:03o}"'),
    "%w of Ruby": lambda data: f"%w[{' '.join(map(str, data))}]",
    # Hex with other marks.
    "brackets around each": each("[{:02x}]"),
    "angles around each": each("<{:02x}>"),
    "escapes with blanks": each("\\x{:02x}", " "),
    "percent with blanks": each("%{:02x}", " "),
    "x before each": each("x{:02x}", " "),
    "pluses": each("{:02x}", "+"),
    "slashes": each("{:02x}", "/"),
    # Debuggers, assemblers, languages.
    "gdb x/c": addresses(gdb_cell),
    "gdb x/u": addresses(str),
    "gdb print of char[]": lambda data: "$1 = {" + ", ".join(map(gdb_cell, data)) + "}",
    "delve": addresses(lambda b: f"0x{b:02x}", "   "),
    "objdump -s": lambda data: "Contents of section .data:\n" + "\n".join(f" {16 * n:04x} {row.hex(' ', -4):<35}  {shown(row)}" for n, row in enumerate(rows(data, 16))),
    "emacs hexl": lambda data: "87654321  0011 2233 4455 6677 8899 aabb ccdd eeff  0123456789abcdef\n" + dump("{at:08x}: {words:<39}  {text}")(data),
    "HxD": lambda data: "Offset(h) 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F\n\n" + dump("{at:08X}  {upper:<47}  {text}")(data),
    "VS Code": lambda data: "  Offset: 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F \t\n" + dump("{at:08X}: {upper:<47}    {text}")(data),
    "spew of Go": lambda data: f"([]uint8) (len={len(data)} cap=64) {{\n" + "\n".join(" " + line for line in dump("{at:08x}  {half:<48}  |{text}|")(data).rstrip().split("\n")) + "\n}",
    ".byte of assemblers": lambda data: "\n".join("\t.byte\t" + ", ".join(f"0x{b:x}" for b in row) for row in rows(data, 8)),
    "db of assemblers": lambda data: "\n".join("    db " + ", ".join(f"0{b:02x}h" for b in row) for row in rows(data, 8)),
    "var_dump of PHP": lambda data: f"array({len(data)}) {{\n" + "".join(f"  [{n}]=>\n  int({b})\n" for n, b in enumerate(data, 1)) + "}",
    "Dumper of Perl": lambda data: "$VAR1 = [\n" + ",\n".join(f"          '{b}'" for b in data) + "\n        ];",
    "~p of Erlang": erlang_text,
    "inspect of Elixir": lambda data: textwrap.fill("<<" + ", ".join(map(str, data)) + ">>", 78, subsequent_indent="  "),
    "x of C#": lambda data: '"' + "".join(f"\\x{b:04x}" for b in data) + '"',
    "jshell": lambda data: f"$3 ==> byte[{len(data)}] {{ {', '.join(signed(data))} }}",
    "Julia": lambda data: f"{len(data)}-element Vector{{UInt8}}:\n" + "\n".join(f" 0x{b:02x}" for b in data),
    "NSData": lambda data: f"{{length = {len(data)}, bytes = 0x{data.hex()}}}",
    "F#": lambda data: "[|" + "; ".join(f"0x{b:02x}uy" for b in data) + "|]",
    "Delphi": lambda data: "(" + ", ".join(f"${b:02X}" for b in data) + ")",
    "SQL": lambda data: f"INSERT INTO frames VALUES (X'{data.hex().upper()}');",
    # Editors and the web.
    "vim": vim,
    "XML": xml("&#{};"),
    "XML in hex": xml("&#x{:X};"),
    "a form of HTML": lambda data: "payload=" + quote_plus(data),
    "a table of HTML": lambda data: "<table>" + "".join(f"<tr><td>{16 * n:04x}</td><td>{row.hex(' ')}</td><td>{html.escape(shown(row))}</td></tr>" for n, row in enumerate(rows(data, 16))) + "</table>",
    "a table of Markdown": lambda data: "| offset | bytes |\n|---|---|\n" + "\n".join(f"| 0x{16 * n:04x} | {row.hex(' ')} |" for n, row in enumerate(rows(data, 16))),
    "fields in a table of Markdown": lambda data: "| bytes | meaning |\n|---|---|\n" + "\n".join(f"| `{row.hex(' ')}` | field {n} |" for n, row in enumerate(rows(data, 4))),
    # Several lines of a log.
    "chunks in a log": lambda data: "\n".join(f"10:15:30.{n:03d} DEBUG chunk {n}: {row.hex(' ')}" for n, row in enumerate(rows(data, 32))),
    "chunks of syslog": lambda data: "\n".join(f"Nov 26 10:15:30 host app[123]: data[{32 * n}]: {row.hex()}" for n, row in enumerate(rows(data, 32))),
}  # fmt: skip
"""By name."""


def lines_of(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


def logged(line: str) -> Callable[[str], str]:
    """Put something around each line; `line` has the fields n, of three digits, and text."""
    return lambda text: "\n".join(line.format(n=100 + n, text=each) for n, each in enumerate(lines_of(text)))


def as_json(name: str) -> Callable[[str], str]:
    """A JSON object a line."""
    return lambda text: "\n".join(
        json.dumps({"time": f"2026-11-26T10:15:30.{100 + n}Z", "level": "debug", name: each})
        for n, each in enumerate(lines_of(text))
    )


LOGGED: Final[dict[str, Callable[[str], str]]] = {
    "journald": logged("Nov 26 10:15:30 broker-1 kafka[4242]: {text}"),
    "logback": logged("10:15:30.{n} [main] DEBUG o.a.k.c.NetworkClient - {text}"),
    "log4j with the class behind it": logged("[2026-11-26 10:15:30,{n}] TRACE [Broker id=1] {text} (kafka.server.KafkaApis)"),
    "kubectl --timestamps": logged("2026-11-26T10:15:30.123456{n}Z {text}"),
    "kubectl --prefix": logged("[pod/kafka-0/kafka] {text}"),
    "compose": logged("kafka-1  | {text}"),
    "Go's log": logged("2026/11/26 10:15:30 conn.go:{n}: {text}"),
    "klog": logged("I1126 10:15:30.123456   4242 conn.go:{n}] {text}"),
    "dmesg": logged("[  123.{n}456] {text}"),
    "pytest": logged("E       {text}"),
    "grep -n": logged("{n}:{text}"),
    "grep -n with names": logged("wire.log:{n}:{text}"),
    "IRC": logged("10:15 <bob> {text}"),
    "colors": logged("\x1b[2m2026-11-26\x1b[0m \x1b[32mDEBUG\x1b[0m \x1b[1m{text}\x1b[0m"),
    "JSON": as_json("msg"),
    "JSON of Docker": lambda text: "\n".join(json.dumps({"log": line + "\n", "stream": "stderr"}) for line in lines_of(text)),
    "one JSON": lambda text: json.dumps({"level": "debug", "message": text}),
    "logfmt": lambda text: "\n".join(f"time=2026-11-26T10:15:30Z level=debug msg={json.dumps(line)}" for line in lines_of(text)),
    "lines that a diff adds": lambda text: "@@ -0,0 +1,9 @@\n" + before_lines("+")(text),
    "commented out": before_lines("// "),
    "commented out with hashes": before_lines("# "),
    "a block comment": lambda text: "/*\n" + before_lines(" * ")(text) + "\n */",
    "cat -A": logged("{text}$"),
    "fences on the same lines": lambda text: f"```{text.rstrip()}```",
    "Jira's noformat": lambda text: f"{{noformat}}{text.rstrip()}{{noformat}}",
    "Jira's code": lambda text: f"{{code:java}}\n{text}\n{{code}}",
    "smart quotes": lambda text: text.replace('"', "\u201d").replace("'", "\u2019"),
    "blanks that don't break": lambda text: text.replace("  ", " \xa0"),
}  # fmt: skip
"""What stands around lines, by name."""
