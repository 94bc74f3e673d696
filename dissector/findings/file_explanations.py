"""Explanations of codes about files, packets and connections. `explanations` has those about messages."""

from typing import Final

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
CAPTURE_AGAIN: Final = (
    "Capture again, nearer to the client or the broker, with a larger buffer, without a snap length, and from before "
    "the connection is opened."
)

OF_FILES: Final = (
    Explanation(
        "not-a-capture", "Not a capture file", ERROR,
        "A file could not be opened, or its format is not supported.",
        "It is another kind of file, it is empty, or there is no permission to read it.",
        "Omit it. Its first bytes are in the quarantine table.",
    ),
    Explanation(
        "cell-too-large", "Message too large for a table", NOTE,
        "As JSON, a message is larger than a table cell may be: its content was omitted.",
        "Batches of many megabytes; their records are in the records table all the same.",
        "See the exchange in the capture itself, or ingest with --frames, which keeps its bytes.",
    ),
    Explanation(
        "non-kafka-connections", "Connections of other protocols", WARNING,
        "Connections of the capture that are not Kafka are counted by protocol: they have no row, unless they are on "
        "Kafka's port.",
        "Traffic of other programs; a Kafka listener with TLS on another port than 9092; or health checks and "
        "scanners, more than are listed as rows.",
        "If one of them is Kafka's, name its port: --port 9093.",
    ),
    Explanation(
        "unreachable", "Server not reached", ERROR,
        "Connections to this server were refused (RST in response to SYN), or nothing came back.",
        "Nothing listens on this port: it is the wrong one, or the broker is not running. Without any answer: a "
        "firewall or a security group, or no such host.",
        "Correct bootstrap.servers, or start the broker. On the broker, ss -ltn shows the ports with a listener.",
    ),
    Explanation(
        "advertised-unreachable", "Advertised address not reached", ERROR,
        "A broker advertises this address in Metadata, and connections to it were refused or not answered.",
        "The broker's advertised.listeners has an address or port that clients can't reach: an internal name, "
        "localhost, a container's port.",
        "Set advertised.listeners to an address that clients reach, one for each listener: clients connect to it, not "
        "to bootstrap.servers, for all but the first request.",
    ),
    Explanation(
        "packets-skipped", "Packets that were not read", WARNING,
        "Packets that may have carried Kafka were not read: the message says why and how many.",
        "An unknown link type or tunnel, IP fragments that were never complete, or truncated headers.",
        CAPTURE_AGAIN,
    ),
    Explanation(
        "early-responses", "Responses before their requests", WARNING,
        "The capture has responses in front of the requests that they respond to. They are paired all the same.",
        "A network card with several queues, the interface any, or captures of two hosts whose clocks differ.",
        "Do not trust latencies of this capture. Shift one of the merged captures (editcap -t), and merge them again.",
    ),
    Explanation(
        "connections-forgotten", "Connections split in two", WARNING,
        "Too many connections were open: idle ones were forgotten, and those that continued are shown as two.",
        "The bound on open connections keeps memory flat.",
        "Capture fewer hosts or ports at a time.",
    ),
    Explanation(
        "findings-omitted", "Too many findings", NOTE,
        "There are more findings of one code than are kept; the rest is counted.",
        "The bound keeps memory flat.",
        "Filter the capture, or fix the first findings and capture again.",
    ),
    Explanation(
        "file-damaged", "Damaged file", WARNING,
        "Part of a file makes no sense and was skipped.",
        "The program that wrote it was killed, a disk was full, or bytes changed in transit.",
        "What could be read is shown. If the file was copied, compare it with the original.",
    ),
    Explanation(
        "file-truncated", "Truncated file", WARNING,
        "The file ends inside a packet, block or batch, or became shorter while it was read.",
        "The program that wrote it was killed, still writes, or writes it again; or a disk was full.",
        "All before the cut is shown.",
    ),
    Explanation(
        "block-length", "pcapng blocks with two lengths", WARNING,
        "Blocks have another length at their end than at their beginning.",
        "The program that wrote the file has a bug, or the file is damaged.",
        "The first length was used. Send the file to the developers of the program.",
    ),
    Explanation(
        "not-merged", "Files not merged by time", WARNING,
        "Files that overlap in time were read one after the other, at least in part.",
        "Merging needs a temporary file, and there was no space for it.",
        "Free space in the directory of temporary files (TMPDIR), or merge the files first, with mergecap for example.",
    ),
    Explanation(
        "file-changed", "File changed while it was read", ERROR,
        "A file was replaced or removed after it was scanned: nothing of it is in the tables.",
        "A program still writes to it, or it was moved or removed.",
        "Ingest it when it is no longer written to. For the folder of a running ring, use --follow.",
    ),
    Explanation(
        "late-file", "Late file of a ring", WARNING,
        "A file appeared after others with later packets had been read: it was read by itself.",
        "It was copied or renamed into the folder, or it was overwritten with older packets.",
        "Connections that continue in other files are separate there: ingest all files together to get them whole.",
    ),
    Explanation(
        "file-grew", "File grew after it was read", WARNING,
        "A file of a ring was considered complete but was written to later: the added part is not in the tables.",
        "The capture program paused for longer than --follow waits for a file.",
        "Ingest the file by itself into other tables, or stop the capture before its last file is read.",
    ),
    Explanation(
        "file-overwritten", "File overwritten before it was read", WARNING,
        "A file of a ring was overwritten before it was read: its packets are lost.",
        "The ring wraps around faster than its files are read.",
        "Use more or larger files in the ring, or more cores for ingesting.",
    ),
    Explanation(
        "secrets-omitted", "Secrets not used", NOTE,
        "The file has secrets that decrypt no TLS connection: of another protocol, or more than are read.",
        "A pcapng file has blocks of secrets for TLS, SSH, WireGuard and others; a bound keeps memory flat.",
        "Nothing, where Kafka's connections are decrypted. Do not share the file: it has secrets.",
    ),
    Explanation(
        "key-log", "Key log does not fit", WARNING,
        "A key log has no secrets of some TLS connections of the capture: they stay encrypted.",
        "It is of another program or another run, was switched on after the connections had begun, or is no key log. A "
        "connection that began before the capture is found by its records with TLS 1.3 alone.",
        "Log the keys of the client or of the broker while the capture runs, from before the first connection on.",
    ),
    Explanation(
        "tls-not-decrypted", "TLS records not decrypted", WARNING,
        "Records of a connection whose keys are in the key log could not be decrypted: they are gaps.",
        "Packets are missing or damaged, the handshake is not whole in the capture, or the suite is not supported. "
        "Where the capture does not have the handshake, secrets are tried one after the other, up to a limit.",
        "Capture from before the connection begins, and without losses.",
    ),
    Explanation(
        "tls-old", "Old TLS", WARNING,
        "Connections use a version of TLS before 1.2, or a cipher suite that should not be used any more.",
        "TLS 1.0 and 1.1 are deprecated (RFC 8996); RC4, 3DES and suites without authentication are broken. With RSA "
        "key exchange who gets the broker's private key can read what was captured before. A client offers what its "
        "library and its settings allow, and the broker chooses.",
        "Set ssl.enabled.protocols=TLSv1.2,TLSv1.3 and leave ssl.cipher.suites empty on both sides, and use a newer "
        "client where it offers nothing better.",
    ),
    Explanation(
        "tls-certificate", "Certificate not valid, or not for long", WARNING,
        "A certificate was not valid when the capture was made, or will not be in 30 days.",
        "Nobody has renewed it, or the clock of the machine is wrong. Clients refuse to connect once it has expired.",
        "Renew it: ssl.keystore.location names the keystore of a broker or of a Java client "
        "(ssl.certificate.location in librdkafka). A broker reads a new keystore without a restart when "
        "kafka-configs.sh sets the same value again.",
    ),
    Explanation(
        "tls-closed-early", "Closed without notice", NOTE,
        "A side closed a TLS connection without close_notify, the alert with which TLS ends.",
        "The program was killed or crashed, or closes the socket alone. A firewall in between can cut a connection so, "
        "too.",
        "Nothing, where all requests have their responses.",
    ),
    Explanation(
        "comments-omitted", "Comments omitted", NOTE,
        "The file has more comments or host names than are kept.",
        "The bound keeps memory flat.",
        "They are still in the file, and other programs show them.",
    ),
    Explanation(
        "packets-dropped", "The capture lost packets", WARNING,
        "The capture program reports that it dropped packets.",
        "Its buffer was full: the disk or the machine was too slow for the traffic.",
        "That may explain gaps and requests without a response. Capture with a filter on the port, or a larger buffer "
        "(-B).",
    ),
    Explanation(
        "synthetic-metadata", "Synthetic times and addresses", NOTE,
        "The input is hex: it has neither times nor addresses.",
        "A transcript has only the bytes of frames.",
        "Only the order is meaningful.",
    ),
    Explanation(
        "frame-size", "Wrong size prefix", WARNING,
        "The size in front of a frame of the hex input is not that of the bytes that follow.",
        "Bytes were omitted when it was copied.",
        "Copy it again, from the size on and to the end.",
    ),
    Explanation(
        "not-read-on", "Not all of the input was read", WARNING,
        "A pipe or compressed file became larger than is read, or could not be kept.",
        "What comes from a pipe or is decompressed goes to a temporary file, which is bounded and needs room.",
        "Give the file itself, decompressed, or make room in the directory of temporary files (TMPDIR).",
    ),
)  # fmt: skip
