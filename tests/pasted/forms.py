"""Writers of bytes in the forms in which people paste them: one a form. None uses the code under test."""

# ruff: noqa: E501  # what people paste has long lines

import base64
import html
import json
import quopri
from collections.abc import Callable
from itertools import groupby
from typing import Final
from urllib.parse import quote_from_bytes

Writer = Callable[[bytes], str]


def shown(data: bytes, other: str = ".") -> str:
    """The text column of a dump."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else other for byte in data)


def rows(data: bytes, width: int = 16) -> list[tuple[int, bytes]]:
    return [(at, data[at : at + width]) for at in range(0, len(data), width)]


def dump(line: str, *, width: int = 16, end: str = "", other: str = ".") -> Writer:
    """A dump of rows; `line` has the fields at, hex, words and text. `end` is its last line, with the field at."""

    def write(data: bytes) -> str:
        lines = [
            line.format(
                at=at, hex=row.hex(" "), words=row.hex(" ", -2), plain=row.hex(), upper=row.hex(" ").upper(),
                half=row[:8].hex(" ") + "  " + row[8:].hex(" "), dash=row[:8].hex(" ") + ("-" if row[8:] else " ") + row[8:].hex(" "),
                halfbar=row[:8].hex(" ").ljust(23) + " ┊ " + row[8:].hex(" ").ljust(23),
                octal=" ".join(f"{byte:03o}" for byte in row), decimal=" ".join(f"{byte:3d}" for byte in row),
                binary=" ".join(f"{byte:08b}" for byte in row), prefixed=" ".join(f"0x{byte:02x}" for byte in row),
                tabbed="\t".join(f"0x{byte:02x}" for byte in row), colons=row.hex(":"),
                little=" ".join(f"{int.from_bytes(row[i:i+2], 'little'):04x}" for i in range(0, len(row), 2)),
                text=shown(row, other),
            ).rstrip()
            for at, row in rows(data, width)
        ]  # fmt: skip
        return "\n".join([*lines, *([end.format(at=len(data))] if end else [])]) + "\n"

    return write


def od_c(data: bytes) -> str:
    names = {0: "\\0", 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 0x5C: "\\"}
    lines = []
    for at, row in rows(data):
        cells = [names.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"{b:03o}") for b in row]
        lines.append(f"{at:07o}" + "".join(f"{cell:>4}" for cell in cells))
    return "\n".join([*lines, f"{len(data):07o}"]) + "\n"


def c_string(data: bytes, *, octal: bool = False, always: bool = False) -> str:
    parts = []
    for byte in data:
        if 0x20 <= byte < 0x7F and byte not in b"\"\\'" and not always:
            parts.append(chr(byte))
        else:
            parts.append(f"\\{byte:03o}" if octal else f"\\x{byte:02x}")
    return "".join(parts)


def go_q(data: bytes) -> str:
    short = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\"}
    return '"' + "".join(short.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\x{b:02x}") for b in data) + '"'


def strace(data: bytes) -> str:
    short = {9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\"}
    parts = []
    for at, byte in enumerate(data):
        if byte in short:
            parts.append(short[byte])
        elif 0x20 <= byte < 0x7F:
            parts.append(chr(byte))
        else:
            digit_follows = data[at + 1 : at + 2].isdigit()
            parts.append(f"\\{byte:03o}" if digit_follows else f"\\{byte:o}")
    return "".join(parts)


def haskell(data: bytes) -> str:
    names = [
        "NUL",
        "SOH",
        "STX",
        "ETX",
        "EOT",
        "ENQ",
        "ACK",
        "a",
        "b",
        "t",
        "n",
        "v",
        "f",
        "r",
        "SO",
        "SI",
        "DLE",
        "DC1",
        "DC2",
        "DC3",
        "DC4",
        "NAK",
        "SYN",
        "ETB",
        "CAN",
        "EM",
        "SUB",
        "ESC",
        "FS",
        "GS",
        "RS",
        "US",
    ]
    out = ""
    for at, b in enumerate(data):
        following = chr(data[at + 1]) if at + 1 < len(data) and 0x20 <= data[at + 1] < 0x7F else ""
        if b in (0x22, 0x5C):
            out += "\\" + chr(b)
        elif 0x20 <= b < 0x7F:
            out += chr(b)
        elif b < 32:
            out += "\\" + names[b] + ("\\&" if names[b] == "SO" and following == "H" else "")
        elif b == 127:
            out += "\\DEL"
        else:
            out += f"\\{b}" + ("\\&" if following.isdigit() else "")
    return f'"{out}"'


def erlang(data: bytes) -> str:
    return "<<" + ",".join(map(str, data)) + ">>"


def wrapped(items: list[str], width: int, indent: str = "    ", separator: str = ", ", end: str = ",") -> str:
    lines = [separator.join(items[at : at + width]) for at in range(0, len(items), width)]
    return (end + "\n").join(indent + line for line in lines)


def signed(data: bytes) -> list[str]:
    return [str(b - 256 if b > 127 else b) for b in data]


def mime(data: bytes) -> str:
    return base64.encodebytes(data).decode()


def indexed(line: str, *, first: int = 0) -> Writer:
    """A line for each byte; `line` has the fields n, byte and signed."""
    return lambda data: "\n".join(
        line.format(n=number, byte=byte, signed=text)
        for number, (byte, text) in enumerate(zip(data, signed(data), strict=True), first)
    )


def rust(data: bytes) -> str:
    """`{:?}` of `Bytes`: a zero is no octal number, whatever follows it."""
    short = {0: "\\0", 9: "\\t", 10: "\\n", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\"}
    return 'b"' + "".join(short.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\x{b:02x}") for b in data) + '"'


def gdb(data: bytes) -> str:
    """What `print/x` has: a run of equal items once."""
    runs = ((key, len(list(run))) for key, run in groupby(data))
    return "$1 = {" + ", ".join(
        f"0x{key:x} <repeats {count} times>" if count > 9 else ", ".join([f"0x{key:x}"] * count) for key, count in runs
    ) + "}"  # fmt: skip


def netty(data: bytes) -> str:
    edge = "+--------+-------------------------------------------------+----------------+"
    lines = [
        "         +-------------------------------------------------+",
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
        edge,
        *(f"|{at:08x}| {row.hex(' '):<47} |{shown(row):<16}|" for at, row in rows(data)),
        edge,
    ]
    return "\n".join(lines)


FORMS: Final[dict[str, Writer]] = {
    # Dumps.
    "xxd": dump("{at:08x}: {words:<40} {text}"),
    "xxd -u -g1": dump("{at:08x}: {upper:<48} {text}"),
    "xxd -c 8": dump("{at:08x}: {words:<20} {text}", width=8),
    "xxd -b": dump("{at:08x}: {binary:<54} {text}", width=6),
    "hexdump -C": dump("{at:08x}  {half:<48}  |{text}|", end="{at:08x}"),
    "hexdump": dump("{at:07x} {little}", end="{at:07x}"),
    "hexdump -b": dump("{at:07x} {octal}", end="{at:07x}"),
    "od -Ax -tx1": dump("{at:06x} {hex}", end="{at:06x}"),
    "od -tx1": dump("{at:07o} {hex}", end="{at:07o}"),
    "od -Ad -tx1z": dump("{at:07d} {hex:<47}  >{text}<", end="{at:07d}"),
    "od -b": dump("{at:07o} {octal}", end="{at:07o}"),
    "od -x": dump("{at:07o} {little}", end="{at:07o}"),
    "od -tu1": dump("{at:07o} {decimal}", end="{at:07o}"),
    "od -c": od_c,
    "Wireshark": dump("{at:04x}   {half:<48}   {text}"),
    "tshark -x": dump("{at:04x}  {hex:<47}   {text}"),
    "follow hex": dump("{at:08x}  {half:<48}   {text}"),
    "tcpdump -X of a stream": dump("\t0x{at:04x}:  {words:<40}  {text}"),
    "netty": netty,
    "netty in a log": lambda data: "10:15:30.123 [nioEventLoopGroup-2-1] DEBUG i.n.h.l.LoggingHandler - [id: 0x7a3b, L:/127.0.0.1:9092] READ: 53B\n" + netty(data),
    "hexyl": lambda data: "┌────────┬─────────────────────────┬─────────────────────────┬────────┬────────┐\n" + dump("│{at:08x}│ {halfbar} │{text:<16}│", other="⋄")(data),
    "Format-Hex": lambda data: "           00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F\n\n" + dump("{at:08X}   {upper:<47}  {text}")(data),
    "certutil": dump("{at:04x}  {half:<48}   {text}"),
    "WinDbg": dump("00000000`{at:08x}  {dash:<47}  {text}"),
    "gdb": dump("0x7ffd0000{at:04x}:\t{tabbed}", width=8),
    "gdb with a symbol": dump("0x5555{at:04x} <buf+{at}>:\t{tabbed}", width=8),
    "lldb": dump("0x16fdff{at:04x}: {hex:<47}  {text}"),
    "mitmproxy": dump("{at:010x} {hex:<47}  {text}"),
    "CodeCrafters": lambda data: "remote: [tester::#NH4] [client] Idx  | Hex                                             | ASCII\nremote: [tester::#NH4] [client] -----+-------------------------------------------------+-----------------\n" + dump("remote: [tester::#NH4] [client] {at:04x} | {hex:<47} | {text}")(data),
    "pretty-hex": lambda data: f"Length: {len(data)} (0x{len(data):x}) bytes\n" + dump("{at:04x}:   {half:<50}   {text}")(data),
    "a dump with decimal offsets": dump("{at:5d}: {hex:<47} {text}"),
    "a dump of colons": dump("{at:04x}  {colons}"),
    "a dump in a log": dump("2026-11-26T10:15:30.123456Z 1234 DEBUG [kafka.conn] {at:04x}: {hex:<47}  {text}"),
    "a dump in a table": lambda data: "| offset | bytes |\n|---|---|\n" + dump("| {at:04x} | {hex} |")(data),
    "strace -e write": lambda data: f'write(7, "\\0\\0"..., {len(data)}) = {len(data)}\n' + dump(" | {at:05x}  {half:<48}  {text:<16} |")(data),
    "ngrep -x": lambda data: "T 10.0.0.1:40001 -> 10.0.0.2:9092 [AP] #4\n" + dump("  {half:<48}    {text}")(data),
    "OpenSSL": dump("{at:04x} - {dash:<47}   {text}"),
    "Visual Studio": dump("0x000001D4F2A3{at:04X}  {hex:<47}  {text}"),
    "Burp": dump("{at:8x}\t{hex:<47}\t{text}"),
    # Hex.
    "bare": lambda data: data.hex(),
    "upper case": lambda data: data.hex().upper(),
    "xxd -p": lambda data: "\n".join(data.hex()[at : at + 60] for at in range(0, 2 * len(data), 60)),
    "spaces": lambda data: data.hex(" "),
    "groups of 4": lambda data: data.hex(" ", -4),
    "colons": lambda data: data.hex(":"),
    "dashes": lambda data: data.hex("-").upper(),
    "bars": lambda data: data.hex("|"),
    "commas": lambda data: data.hex(","),
    "0x before all": lambda data: "0x" + data.hex(),
    "in a sentence": lambda data: f"I send {data.hex()} to the broker, and it closes.",
    "in JSON": lambda data: json.dumps({"ts": 1790000000, "level": "debug", "payload": data.hex()}),
    "in CSV": lambda data: f"time,size,payload\n2026-11-26T10:15:30Z,{len(data)},{data.hex()}\n",
    "in a log": lambda data: f"2026-11-26 10:15:30,123 [main] DEBUG wire - >> {data.hex(' ')} ({len(data)} bytes)",
    "librdkafka": lambda data: f"%7|1714550400.000|SEND|rdkafka#producer-1| [thrd:main]: Sent {data.hex()}",
    "Buffer": lambda data: f"<Buffer {data.hex(' ')}>",
    "bytes.fromhex": lambda data: f'data = bytes.fromhex("{data.hex(" ")}")',
    "fields with comments": lambda data: "\n".join(f"{data[at : at + 4].hex(' ')}  // field {at}: 17" for at in range(0, len(data), 4)),
    "fields with colons and hashes": lambda data: "\n".join(f"{data[at : at + 4].hex(':')}: # Size => int32 (a size 0x49 = 73 bytes)" for at in range(0, len(data), 4)),
    "fields with names": lambda data: "\n".join(f"field: {data[at : at + 4].hex(' ')}" for at in range(0, len(data), 4)),
    "bytea": lambda data: f"\\x{data.hex()}",
    "semicolons": lambda data: ";".join(f"{b:02x}" for b in data),
    "HTML": lambda data: f"<pre><code>{data.hex(' ')}</code></pre>",
    "binary digits": lambda data: " ".join(f"{b:08b}" for b in data),
    "octal digits": lambda data: " ".join(f"{b:03o}" for b in data),
    "base64 of a key": lambda data: f"payload={base64.b64encode(data).decode()} size={len(data)}",
    "commented out": lambda data: "\n".join(f"// {data[at : at + 16].hex(' ')}" for at in range(0, len(data), 16)),
    "follow raw": lambda data: f"\n===================================================================\nFollow: tcp,raw\nFilter: tcp.stream eq 0\nNode 0: 127.0.0.1:40007\nNode 1: 127.0.0.1:9092\n{data.hex()}\n===================================================================\n",
    "tcp.payload of JSON": lambda data: json.dumps([{"_source": {"layers": {"tcp": {"tcp.srcport": "40001", "tcp.dstport": "9092", "tcp.payload": data.hex(":")}}}}], indent=2),
    "tcp.payload of PDML": lambda data: f'<field name="tcp.srcport" showname="Source Port: 40001" size="2" pos="34" show="40001" value="9c41"/>\n<field name="tcp.payload" showname="TCP payload ({len(data)} bytes)" size="{len(data)}" pos="66" show="{data.hex(":")}" value="{data.hex()}"/>',
    # Lists of numbers.
    "Go in a log of librdkafka": lambda data: f"%7|1714550400.000|SEND|rdkafka#producer-1| [thrd:main]: Sent [{' '.join(map(str, data))}]",
    "0x list": lambda data: ", ".join(f"0x{b:02x}" for b in data),
    "0X list of C#": lambda data: "new byte[] { " + ", ".join(f"0x{b:02X}" for b in data) + " };",
    "C array": lambda data: f"unsigned char buf[{len(data)}] = {{\n{wrapped([f'0x{b:02x}' for b in data], 12)}\n}};\nunsigned int buf_len = {len(data)};",
    "Wireshark's C array": lambda data: f"char peer0_0[] = {{ /* Packet 4 */\n{wrapped([f'0x{b:02x}' for b in data], 8, '')} }};",
    "C array with comments": lambda data: "static const uint8_t REQ[] = {\n" + "\n".join("  " + "".join(f"0x{b:02x}, " for b in data[at : at + 4]) + f"/* bytes {at} to {at + 3} */" for at in range(0, len(data), 4)) + "\n};",
    "Rust": lambda data: f"let r: [u8; {len(data)}] = [{', '.join(f'0x{b:02x}u8' for b in data)}];",
    "vec!": lambda data: f"vec![{', '.join(map(str, data))}]",
    "Go": lambda data: "[" + " ".join(map(str, data)) + "]",
    "Go %#v": lambda data: "[]byte{" + ", ".join(f"0x{b:x}" for b in data) + "}",
    "Go in a log": lambda data: f"2026/11/26 10:15:30 kafka: wrote {len(data)} bytes: [{' '.join(map(str, data))}]",
    "Java": lambda data: "[" + ", ".join(signed(data)) + "]",
    "Java with casts": lambda data: "byte[] b = {" + ", ".join(f"(byte) 0x{b:02X}" for b in data) + "};",
    "Kotlin": lambda data: "byteArrayOf(" + ", ".join(f"0x{b:02x}.toByte()" for b in data) + ")",
    "Uint8Array": lambda data: f"Uint8Array({len(data)}) [\n{wrapped([f'{b:3d}' for b in data], 12, '  ')}\n]",
    "Buffer as JSON": lambda data: json.dumps({"type": "Buffer", "data": list(data)}),
    "Python's list": lambda data: f"bytes({list(data)})",
    "Erlang": erlang,
    "Elixir": lambda data: "<<" + ", ".join(map(str, data)) + ">>",
    "PowerShell": lambda data: "$b = " + ",".join(f"0x{b:02X}" for b in data),
    "Visual Basic": lambda data: "{" + ", ".join(f"&H{b:02X}" for b in data) + "}",
    "binary numbers": lambda data: "[" + ", ".join(f"0b{b:08b}" for b in data) + "]",
    "numbers with indexes of Visual Studio": indexed("[{n}]\t0x{byte:02x}\tbyte"),
    "numbers with indexes of IntelliJ": lambda data: f"result = {{byte[{len(data)}]@1234}}\n" + indexed(" {n} = {signed}")(data),
    "numbers with indexes of lldb": lambda data: f"(unsigned char [{len(data)}]) $0 = {{\n" + indexed("  [{n}] = 0x{byte:02x}")(data) + "\n}",
    "numbers with indexes of PHP": lambda data: "Array\n(\n" + indexed("    [{n}] => {byte}", first=1)(data) + "\n)",
    "a Uint8Array as JSON": lambda data: json.dumps({str(n): byte for n, byte in enumerate(data)}),
    "a list of YAML": lambda data: "bytes:\n" + "".join(f"  - {b}\n" for b in data),
    "gdb print": gdb,
    "hex of one digit or two": lambda data: "[" + ", ".join(f"{b:x}" for b in data) + "]",
    "hex of JavaScript's toString": lambda data: " ".join(f"{b:x}" for b in data),
    "Python's list of hex()": lambda data: str([hex(b) for b in data]),
    "a list of hex in quotes": lambda data: str([f"{b:02x}" for b in data]),
    "Nim": lambda data: "@[" + ", ".join(f"{b}'u8" for b in data) + "]",
    "a number a line": lambda data: "\n".join(f"{b}," for b in data),
    # Strings.
    "Lua": lambda data: '"' + "".join(f"\\{b:03d}" if not 0x20 <= b < 0x7F or b in b"\"\\" else chr(b) for b in data) + '"',
    "x escapes": lambda data: c_string(data, always=True),
    "Python": lambda data: repr(data),
    "bytearray": lambda data: repr(bytearray(data)),
    "Python in a log": lambda data: f"DEBUG:kafka.conn:<BrokerConnection node_id=bootstrap-0 host=localhost:9092>: Sending {data!r}",
    "C string": lambda data: f'char *p = "{c_string(data)}";',
    "C strings": lambda data: "const char req[] =\n" + "\n".join(f'  "{c_string(data[at : at + 16], always=True)}"' for at in range(0, len(data), 16)) + ";",
    "Wireshark's escaped string": lambda data: " \\\n".join(f'"{c_string(data[at : at + 16], always=True)}"' for at in range(0, len(data), 16)),
    "octal escapes": lambda data: f'printf "{c_string(data, octal=True)}" | nc localhost 9092',
    "Go %q": go_q,
    "Rust string": lambda data: 'b"' + "".join(f"\\x{b:02x}" if not 0x20 <= b < 0x7F or b in b"\"\\" else chr(b) for b in data).replace("\\x00", "\\0") + '"' if not any(data[i] == 0 and data[i + 1 : i + 2].isdigit() for i in range(len(data))) else go_q(data),
    "Rust's Bytes": rust,
    "OCaml": lambda data: '"' + "".join(chr(b) if 0x20 <= b < 0x7F and b not in b'"\\' else f"\\{b:03d}" for b in data) + '"',
    "Python in HTML": lambda data: html.escape(repr(data)),
    "JavaScript": lambda data: '"' + "".join(f"\\u{b:04x}" if not 0x20 <= b < 0x7F or b in b"\"\\" else chr(b) for b in data) + '"',
    "JSON of text": lambda data: json.dumps({"message": data.decode("latin-1")}),
    "Python in JSON": lambda data: json.dumps({"level": "debug", "message": f"Sending {data!r}"}),
    "Haskell": haskell,
    "strace": lambda data: f'sendto(7, "{strace(data)}", {len(data)}, MSG_NOSIGNAL, NULL, 0) = {len(data)}',
    "strace with a process": lambda data: f'[pid  4242] 10:15:30.123456 write(12<TCP:[127.0.0.1:40001->127.0.0.1:9092]>, "{strace(data)}", {len(data)}) = {len(data)}',
    "strace of vectors": lambda data: f'writev(7, [{{iov_base="{strace(data[:9])}", iov_len=9}}, {{iov_base="{strace(data[9:])}", iov_len={len(data) - 9}}}], 2) = {len(data)}',
    "ltrace": lambda data: f'rdkafka->send(0x7f, "{strace(data)}", {len(data)}) = {len(data)}',
    # Others.
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64 for URLs": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    "base64 of MIME": mime,
    "base64 in JSON": lambda data: json.dumps({"ts": 1790000000123, "payload": base64.b64encode(data).decode()}),
    "base64 in YAML": lambda data: "packets:\n  - packet: 4\n    peer: 0\n    index: 0\n    timestamp: 1790000000.123\n    data: !!binary |\n" + "".join(f"      {line}\n" for line in mime(data).splitlines()),
    "percent": lambda data: quote_from_bytes(data),
    "percent of all": lambda data: "".join(f"%{b:02X}" for b in data),
    "cat -v": lambda data: "".join(("M-" if b > 127 else "") + (f"^{chr((b & 127) ^ 64)}" if (b & 127) < 32 or (b & 127) == 127 else chr(b & 127)) for b in data),
}  # fmt: skip
"""By name."""

AROUND: Final[dict[str, Callable[[str], str]]] = {
    "nothing": lambda text: text,
    "a fence": lambda text: f"```\n{text}\n```\n",
    "prose": lambda text: (
        f"Hi all,\n\nI get this error since 3.9.1 (2026-11-26, build 12345):\n\n{text}\n\nAny idea? Thanks!\n"
    ),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "BOM": lambda text: "\ufeff" + text,
    "indent": lambda text: "\n".join(f"    {line}" for line in text.split("\n")),
    "colors": lambda text: f"\x1b[32m{text}\x1b[0m\n",
}
"""What stands around, by name."""


def before_lines(mark: str) -> Callable[[str], str]:
    return lambda text: "\n".join(mark + line for line in text.rstrip("\n").split("\n"))


def broken(width: int) -> Callable[[str], str]:
    """Break lines at a column, as a terminal shows them, with the blanks at their ends gone."""
    return lambda text: "\n".join(
        line[at : at + width].rstrip() for line in text.split("\n") for at in range(0, max(1, len(line)), width)
    )


LAYOUTS: Final[dict[str, Callable[[str], str]]] = {
    "quoted": before_lines("> "),
    "quoted twice": before_lines("> > "),
    "numbered": lambda text: "\n".join(f"{n:6d}\t{line}" for n, line in enumerate(text.split("\n"), 1)),
    "numbered by an editor": lambda text: "\n".join(f"{n:3d} | {line}" for n, line in enumerate(text.split("\n"), 40)),
    "broken at 80": broken(80),
    "broken at 77 and quoted": lambda text: before_lines("> ")(broken(77)(text)),
    "quoted-printable": lambda text: quopri.encodestring(text.encode()).decode(),
    "HTML's line breaks": lambda text: "<p>" + html.escape(text).replace("\n", "<br/>") + "</p>",
}
"""What mail programs, terminals and editors do to lines, by name."""
