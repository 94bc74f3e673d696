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
        "Leave it out. The table quarantine has its path and size, and none of its content.",
    ),
    Explanation(
        "cell-too-large", "Message too large for a table", NOTE,
        "As JSON, a message exceeds the maximum size of a table cell, so its content was omitted.",
        "Its batches hold many megabytes. Their records are still in the records table.",
        "Look at the exchange in the capture itself, or ingest with --frames, which keeps its bytes.",
    ),
    Explanation(
        "non-kafka-connections", "Connections of other protocols", WARNING,
        "The capture has connections that are not Kafka. They are counted by protocol, and have a row only if they "
        "are on Kafka's port.",
        "Traffic of other programs; a Kafka listener with TLS on a port other than 9092; or more health checks and "
        "scanners than are listed as rows.",
        "If one of them is Kafka, name its port: --port 9093.",
    ),
    Explanation(
        "unreachable", "Server not reached", ERROR,
        "Connections to this server were refused (RST in response to SYN), or SYN got no response.",
        "If it was refused, nothing listens on this port: the port is wrong, or the broker is not running. If there "
        "was no response, a firewall or a security group drops the packets, or there is no such host.",
        "Correct bootstrap.servers, or start the broker. On the broker, ss -ltn shows the ports with a listener.",
    ),
    Explanation(
        "advertised-unreachable", "Advertised address not reached", ERROR,
        "A broker advertises this address in Metadata, and connections to it were refused or got no response.",
        "The broker's advertised.listeners has an address or port that clients can't reach, such as an internal name, "
        "localhost or a container's port.",
        "Set advertised.listeners to addresses that clients can reach, one for each listener: clients use "
        "bootstrap.servers for their first requests only, and these addresses for all others.",
    ),
    Explanation(
        "packets-skipped", "Packets that were not read", WARNING,
        "Packets that may have carried Kafka were not read: the message says why and how many.",
        "An unknown link type or tunnel, IP fragments that were never completed, or truncated headers.",
        CAPTURE_AGAIN,
    ),
    Explanation(
        "frames-cut", "Frames cut by the snap length", WARNING,
        "Packets were captured up to the snap length only, so these frames are incomplete. The captured part is shown.",
        "The capture was made with a snap length (tcpdump -s, editcap -s).",
        "Capture again without one: tcpdump -s 0.",
    ),
    Explanation(
        "early-responses", "Responses before their requests", WARNING,
        "The capture has responses before the requests that they answer. They are paired nevertheless.",
        "The network card has several queues, the capture was made on the interface any, or captures of hosts with "
        "different clocks were merged.",
        "Do not trust latencies in this capture. If it was merged, shift one of its captures in time (editcap -t) and "
        "merge them again.",
    ),
    Explanation(
        "connections-forgotten", "Connections split in two", WARNING,
        "Too many connections were open: idle ones were forgotten, and those that continued are shown as two.",
        "The number of open connections that are kept is limited, so that memory use stays bounded.",
        "Capture fewer hosts or ports at a time.",
    ),
    Explanation(
        "findings-omitted", "Too many findings", NOTE,
        "There are more findings of one code than kdissect keeps; the rest are only counted.",
        "Their number is limited, so that memory use stays bounded.",
        "Filter the capture, or fix the first findings and capture again.",
    ),
    Explanation(
        "file-damaged", "Damaged file", WARNING,
        "Part of a file could not be interpreted and was skipped.",
        "The program that wrote it was killed, a disk was full, or bytes changed in transit.",
        "The readable parts are shown. If the file was copied, compare it with the original.",
    ),
    Explanation(
        "file-truncated", "Truncated file", WARNING,
        "The file ends within a packet, block or batch, or became shorter while it was read.",
        "The program that wrote it was killed, is still writing, or overwrites the file; or a disk was full.",
        "Everything before the end is shown.",
    ),
    Explanation(
        "block-length", "pcapng blocks with two lengths", WARNING,
        "Blocks have different lengths at their beginning and their end.",
        "The program that wrote the file has a bug, or the file is damaged.",
        "The first length was used. Send the file to the developers of the program.",
    ),
    Explanation(
        "not-merged", "Files not merged by time", WARNING,
        "Files that overlap in time were read one after the other, at least in part.",
        "Merging needs a temporary file, and there was no space for it.",
        "Free space in the temporary directory (TMPDIR), or merge the files first, with mergecap for example.",
    ),
    Explanation(
        "file-changed", "File changed while it was read", ERROR,
        "A file was replaced or removed after it was scanned, so none of it is in the tables.",
        "A program still writes to it, or it was moved or removed.",
        "Ingest it when no program writes to it anymore. For the folder of a running ring buffer, use --follow.",
    ),
    Explanation(
        "late-file", "Late file of a ring buffer", WARNING,
        "A file appeared after files with later packets had been read, so it was read by itself.",
        "It was copied or renamed into the folder, or it was overwritten with older packets.",
        "Connections that continue in other files are split in two. Ingest all files together to get them whole.",
    ),
    Explanation(
        "file-grew", "File grew after it was read", WARNING,
        "A file of a ring buffer was considered complete but was written to later: the added part is not in the "
        "tables.",
        "The capture program paused for longer than --follow waits for a file.",
        "Ingest the file by itself into other tables, or stop the capture before its last file is read.",
    ),
    Explanation(
        "file-overwritten", "File overwritten before it was read", WARNING,
        "A file of a ring buffer was overwritten before it was read: its packets are lost.",
        "The ring buffer wraps around faster than its files are read.",
        "Use more or larger files in the ring buffer, or more cores for ingesting.",
    ),
    Explanation(
        "secrets-omitted", "Secrets not used", NOTE,
        "The file has secrets that were not used: they are for other protocols than TLS, or there are more than "
        "kdissect reads.",
        "A pcapng file can have secrets for TLS, SSH, WireGuard and others. Their number is limited, so that memory "
        "use stays bounded.",
        "Nothing, if Kafka's connections are decrypted. Do not share the file: it contains secrets.",
    ),
    Explanation(
        "key-log", "Key log does not fit", WARNING,
        "A key log has no secrets of some TLS connections of the capture: they stay encrypted.",
        "It belongs to another program or another run, was enabled after the connections had begun, or is not a key "
        "log. If a connection began before the capture, its secrets can be found only with TLS 1.3, by its records.",
        "Log the keys of the client or the broker while the capture runs, starting before the first connection.",
    ),
    Explanation(
        "tls-not-decrypted", "TLS records not decrypted", WARNING,
        "Records of a connection whose keys are in the key log could not be decrypted. They are shown as gaps.",
        "Packets are missing or damaged, the handshake is incomplete in the capture, or the cipher suite is not "
        "supported. If the handshake is missing, secrets are tried one by one, up to a limit.",
        "Start the capture before the connection, and capture without losing packets.",
    ),
    Explanation(
        "tls-old", "Old TLS", WARNING,
        "Connections use a TLS version older than 1.2, or a cipher suite that should no longer be used.",
        "TLS 1.0 and 1.1 are deprecated (RFC 8996); RC4, 3DES and suites without authentication are broken. With RSA "
        "key exchange, whoever gets the broker's private key can decrypt earlier captures. A client offers what its "
        "library and its settings allow, and the broker chooses.",
        "Set ssl.enabled.protocols=TLSv1.2,TLSv1.3 and leave ssl.cipher.suites empty on both sides, and upgrade the "
        "client if it offers nothing better.",
    ),
    Explanation(
        "tls-certificate", "Certificate not valid, or about to expire", WARNING,
        "A certificate was not valid when the capture was made, or expired within the next 30 days.",
        "The certificate was not renewed, or the machine's clock is wrong. Clients refuse to connect once it has "
        "expired.",
        "Renew it: ssl.keystore.location names the keystore of a broker or a Java client (ssl.certificate.location in "
        "librdkafka). A broker loads a new keystore without a restart when kafka-configs.sh sets the same location "
        "again.",
    ),
    Explanation(
        "tls-closed-early", "TLS closed without close_notify", NOTE,
        "One side closed a TLS connection without close_notify, the alert that ends TLS.",
        "The program was killed, crashed, or closes only the socket. A firewall in between can also cut a connection.",
        "Nothing, if every request has its response.",
    ),
    Explanation(
        "comments-omitted", "Comments omitted", NOTE,
        "The file has more comments or host names than kdissect keeps.",
        "Their number is limited, so that memory use stays bounded.",
        "They are still in the file, and other programs show them.",
    ),
    Explanation(
        "packets-dropped", "The capture lost packets", WARNING,
        "The capture program reports that it dropped packets.",
        "Its buffer was full: the disk or the machine was too slow for the traffic.",
        "That may explain gaps and requests without a response. Capture with a filter on the port, or with a larger "
        "buffer (-B).",
    ),
    Explanation(
        "synthetic-metadata", "Synthetic times and addresses", NOTE,
        "The input is text with bytes: it mostly has neither times nor addresses. The note says what was recognized "
        "and assumed.",
        "A transcript or pasted text has only the bytes of frames. Packets in a dump have addresses.",
        "Rely on the order only. Where an assumption is wrong, say what a response answers (--response Metadata:12), "
        "or put > (client) and < (broker) in front of the hex.",
    ),
    Explanation(
        "frame-size", "Wrong size prefix", WARNING,
        "The size prefix of a frame in the text does not match the bytes that follow, or bytes are left out.",
        "Some bytes were not copied.",
        "Copy the frame again, from its size prefix to its end.",
    ),
    Explanation(
        "not-read-on", "Only part of the input was read", WARNING,
        "A pipe or compressed file is larger than the limit, or could not be stored.",
        "Input from a pipe or a compressed file goes to a temporary file, whose size is limited and which needs disk "
        "space.",
        "Pass the decompressed file itself, or free space in the temporary directory (TMPDIR).",
    ),
)  # fmt: skip
