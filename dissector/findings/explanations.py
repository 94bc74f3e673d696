"""What the codes mean that are told where a message, a connection or a file is read: `registry` has the others.

Invariant: every code that the program emits is explained, here or by its finder: a test looks for them.
"""

from typing import Final

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
_CAPTURE_AGAIN: Final = (
    "Capture again, nearer to the client or the broker, with a larger buffer, without a snap length, and from before "
    "the connection is opened."
)
_ASK_THE_WRITER: Final = "Nothing for a user. If a client or broker wrote it, show its makers the bytes of this row."

OF_EXCHANGES: Final = (
    Explanation(
        "error-response", "Error response", WARNING,
        "The response bears an error code other than 0, at the top or for one of its topics, partitions or groups.",
        "Each error has a cause of its own: the message says what it asks of a client. Two are steps of the protocol, "
        "and notes: MEMBER_ID_REQUIRED gives a new member its id (KIP-394), UNSUPPORTED_VERSION to ApiVersions names "
        "what the broker has (KIP-511). Others are of every day: COORDINATOR_NOT_AVAILABLE while a group's topic is "
        "made.",
        "Do as the message says (all errors: kdissect explain errors). Retriable ones go away if the client backs off "
        "(retry.backoff.ms) and refreshes its metadata.",
    ),
    Explanation(
        "unanswered", "No response", WARNING,
        "The capture has no response to this request.",
        "It was still being worked on when the capture ended or the connection was closed, the response was lost by "
        "the capture, or the broker never answered: it closes the connection on requests that it can't read.",
        "At the end of a capture it means nothing. Else look at what ended the connection, and at request.timeout.ms "
        "of the client. Fetches are left unanswered whenever a consumer closes.",
    ),
    Explanation(
        "orphan", "A response without its request", WARNING,
        "The capture has no request with the correlation id of this response.",
        "The capture began when the request was already on its way, lost it, or sees one direction only. What the "
        "response is was inferred from its bytes and from the rest of the conversation.",
        _CAPTURE_AGAIN + " If you know what was asked, say so: --response Fetch:12.",
    ),
    Explanation(
        "inferred", "API and version inferred", NOTE,
        "No request says which API and version this response has: they were inferred from its bytes. The message says "
        "how sure that is, and what else they fit.",
        "Responses name neither their API nor its version: only the request does, and the capture lacks it.",
        "Trust it as far as the message goes; or name the request: --response API:VERSION.",
    ),
    Explanation(
        "no-response-expected", "Sent with acks=0", NOTE,
        "A Produce request with acks=0: the broker never answers it, not even with an error.",
        "The producer has acks=0 (request.required.acks=0 in librdkafka): it takes a record for sent once it is in the "
        "socket's buffer.",
        "Fine for what may be lost. Else set acks=all, with enable.idempotence=true: with acks=0 nobody learns of a "
        "record that was refused or lost.",
    ),
    Explanation(
        "cut-short", "A response cut short", ERROR,
        "The connection was closed in the middle of this response.",
        "The client or the broker went away or was killed, or something between them cut the connection.",
        "See who sent RST or FIN, and read that side's log at this time. Clients ask again.",
    ),
    Explanation(
        "incomplete-frame", "Not all of the frame was captured", ERROR,
        "Some bytes of this frame are not in the capture; what comes before the gap is shown.",
        "The capture dropped packets, has a snap length, or ended in the middle; or the connection did.",
        _CAPTURE_AGAIN,
    ),
    Explanation(
        "gap", "Bytes are missing", ERROR,
        "TCP's sequence numbers show that bytes were sent here that the capture does not have.",
        "The capture dropped packets, or saw one of several paths. The receiver has acknowledged most such bytes: then "
        "it is the capture that lost them and not the network.",
        _CAPTURE_AGAIN,
    ),
    Explanation(
        "unparsed", "Bytes that are not a frame", ERROR,
        "Bytes on a Kafka connection in which no frame could be found.",
        "They follow a gap that swallowed the size of a frame, or are not Kafka.",
        "Reading goes on with the next frame that makes sense. See what stands before; other programs on Kafka's port "
        "are told by name where they are known.",
    ),
    Explanation(
        "tls", "Encrypted", WARNING,
        "The connection is TLS: its content can't be read.",
        "The listener is SSL or SASL_SSL.",
        "Capture on a plain listener, or where TLS ends. Secrets in the capture file are not used to decrypt.",
    ),
    Explanation(
        "version-fallback", "ApiVersions response in version 0", NOTE,
        "The broker does not have the version of ApiVersions that was asked for, and answered with a body of version 0 "
        "and UNSUPPORTED_VERSION.",
        "The client is newer than the broker. KIP-511 has it so: the client reads the answer in version 0, whatever it "
        "asked.",
        "Nothing: the client should ask again in a version that the answer names. One that closes the connection "
        "instead does not have KIP-511.",
    ),
    Explanation(
        "unknown-api", "Unknown API", WARNING,
        "The request's API key is in none of the releases that this program knows.",
        "A newer release of Kafka, a broker of another make with APIs of its own, or bytes that are not Kafka's.",
        "Import the release: kdissect schema import kafka-clients-….jar.",
    ),
    Explanation(
        "unknown-version", "Unknown version", WARNING,
        "The API is known and this version of it is not. Where the newest known layout fits the bytes, it was used.",
        "One side is of a newer release of Kafka than this program knows, or of one that took this version out.",
        "Import the release: kdissect schema import kafka-clients-….jar.",
    ),
    Explanation(
        "other-layout", "Same version, other layout", NOTE,
        "The message is laid out as an earlier release has this version, which later ones changed.",
        "The version was a preview when that release came out (KIP-848 was one).",
        "Nothing to read it by. Clients and brokers of these two releases do not understand each other here.",
    ),
    Explanation(
        "malformed", "Malformed message", ERROR,
        "The bytes do not fit the layout of this API and version: a length runs past the end, say.",
        "A mistake of whoever wrote it, damage, a part of the stream that the capture lacks, or a response of another "
        "request than the one that it was paired with.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "trailing-bytes", "Bytes after the last field", WARNING,
        "Bytes follow the last field of the message.",
        "Whoever wrote it has more fields in this version than Kafka has, or a wrong size.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "bad-batch", "Invalid record batch", ERROR,
        "The bytes of a records field are neither a batch of magic 2 nor a message of magic 0 or 1.",
        "Damage, a codec or a magic of another make, or a size that is wrong.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "bad-record", "Invalid record", ERROR,
        "The records of a batch do not end where the batch does, or one of them can't be read.",
        "A count or a length is wrong, or the compressed bytes hold something else.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "bad-crc", "Wrong checksum", ERROR,
        "The checksum of a batch or message is not that of its bytes.",
        "Bytes were changed after it was made: by a faulty network card, memory or disk, by a proxy that rewrites "
        "batches, or by a client that computes it wrongly.",
        "Brokers answer CORRUPT_MESSAGE, and consumers with check.crcs=true refuse it. Find where it was right last.",
    ),
    Explanation(
        "bad-compression", "Records can't be decompressed", ERROR,
        "The compressed records of a batch can't be opened, or would exceed the size that this program allows.",
        "Damage, an unknown codec, or a batch made to exhaust its reader.",
        "If others can read it, it is too large for the limits here; else see who wrote it.",
    ),
    Explanation(
        "inconsistent-batch", "A batch that contradicts itself", WARNING,
        "The header of a batch and its records do not agree: counts, offsets, times, or the order of batches.",
        "The producer or a proxy wrote the header wrongly.",
        "Brokers refuse some of these with INVALID_RECORD. " + _ASK_THE_WRITER,
    ),
)  # fmt: skip

OF_FILES: Final = (
    Explanation(
        "not-a-capture", "Not a capture file", ERROR,
        "A file could not be opened, or its format is not supported.",
        "It is something else, it is empty, or reading it is not permitted.",
        "Leave it out. Its first bytes are in the table of quarantine.",
    ),
    Explanation(
        "cell-too-large", "Message too large for a table", NOTE,
        "As JSON, a message is larger than a table cell may be: its content was left out.",
        "Batches of many megabytes; their records are rows of the table of records all the same.",
        "See the exchange in the capture itself, or ingest with --frames, which keeps its bytes.",
    ),
    Explanation(
        "non-kafka-connections", "Connections of other protocols", WARNING,
        "More connections on Kafka's port speak other protocols than have a row.",
        "Health checks, scanners, TLS or HTTP on a plain listener.",
        "See the rows of the first ones.",
    ),
    Explanation(
        "packets-skipped", "Packets that were not read", WARNING,
        "Packets that may have carried Kafka were not read: the message says why and how many.",
        "An unknown link type or tunnel, IP fragments that never became whole, headers that were cut off.",
        _CAPTURE_AGAIN,
    ),
    Explanation(
        "connections-forgotten", "Connections split in two", WARNING,
        "So many connections were open at a time that idle ones were forgotten; those that continued are shown as two.",
        "The bound on open connections keeps memory flat.",
        "Capture fewer hosts or ports at a time.",
    ),
    Explanation(
        "findings-omitted", "Too many findings", NOTE,
        "There are more findings of one code than are kept; the rest is counted.",
        "The bound keeps memory flat.",
        "Filter the capture down to what matters, or fix the first ones and capture again.",
    ),
    Explanation(
        "file-damaged", "A damaged file", WARNING,
        "Part of a file makes no sense and was skipped.",
        "The program that wrote it was killed, a disk was full, or bytes were changed on the way.",
        "What could be read is shown. If the file was copied, compare it with the original.",
    ),
    Explanation(
        "file-truncated", "Truncated file", WARNING,
        "The file ends inside a packet or block.",
        "The program that wrote it was killed, still writes, or a disk was full.",
        "All before the cut is shown.",
    ),
    Explanation(
        "block-length", "pcapng blocks with two lengths", WARNING,
        "Blocks have another length at their end than at their beginning.",
        "The program that wrote the file has a mistake, or the file is damaged.",
        "They were read by the first length. Show the makers of the program the file.",
    ),
    Explanation(
        "not-merged", "Files not merged by time", WARNING,
        "Files that overlap in time were read one after the other, at least in part.",
        "Merging needs a temporary file, and there was no room for it.",
        "Make room where temporary files go (TMPDIR), or merge the files first, with mergecap for example.",
    ),
    Explanation(
        "file-changed", "File changed while it was read", ERROR,
        "A file was replaced or removed after it was scanned: nothing of it is in the tables.",
        "A program still writes to it, or it was moved or removed.",
        "Ingest it when it is no longer written to; the folder of a running ring with --follow.",
    ),
    Explanation(
        "late-file", "Late file of a ring", WARNING,
        "A file appeared after others with later packets had been read: it was read by itself.",
        "It was copied or renamed into the folder, or it was written over with older packets.",
        "Connections that continue in other files are separate there: ingest all files together to have them whole.",
    ),
    Explanation(
        "file-grew", "File grew after it was read", WARNING,
        "A file of a ring was considered closed and was written to later: what was added is not in the tables.",
        "The program that captures pauses for longer than a file is waited for.",
        "Ingest the file by itself into other tables, or stop the capture before its last file is read.",
    ),
    Explanation(
        "file-overwritten", "File overwritten before it was read", WARNING,
        "A file of a ring was overwritten before it was read: its packets are lost.",
        "The ring goes round faster than its files are read.",
        "Give the ring more files, or larger ones, or ingest more cores.",
    ),
    Explanation(
        "tls-secrets", "The file holds TLS secrets", NOTE,
        "The capture carries keys for TLS connections, which this program does not use.",
        "Wireshark's editcap put them in with --inject-secrets.",
        "Do not pass the file on: who has it can decrypt those connections.",
    ),
    Explanation(
        "comments-omitted", "Comments omitted", NOTE,
        "The file has more comments or host names than are kept.",
        "The bound keeps memory flat.",
        "They are in the file still: other programs show them.",
    ),
    Explanation(
        "packets-dropped", "The capture lost packets", WARNING,
        "The capture program reports that it dropped packets.",
        "Its buffer was full: the disk or the machine was too slow for the traffic.",
        "Gaps and unanswered requests may come from that. Capture with a filter on the port, or a larger buffer (-B).",
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
        "Bytes were left out when it was copied.",
        "Copy it again, from the size on and to the end.",
    ),
    Explanation(
        "not-read-on", "Not all of the input was read", WARNING,
        "A pipe or compressed file became larger than is read, or could not be kept.",
        "What comes from a pipe or is decompressed goes to a temporary file, which is bounded and needs room.",
        "Give the file itself, decompressed, or make room where temporary files go (TMPDIR).",
    ),
)  # fmt: skip

EXPLANATIONS: Final = (*OF_EXCHANGES, *OF_FILES)
