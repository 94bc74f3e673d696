"""Explanations of codes that are reported while a message, a connection or a file is read.

`registry` has the detectors with the others.

Invariant: every code that the program emits is explained, here or by its detector. A test checks it.
"""

from typing import Final

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
_CAPTURE_AGAIN: Final = (
    "Capture again, nearer to the client or the broker, with a larger buffer, without a snap length, and from before "
    "the connection is opened."
)
_ASK_THE_WRITER: Final = (
    "Nothing that a user can do. If a client or broker wrote it, send its developers the bytes of this row."
)

OF_EXCHANGES: Final = (
    Explanation(
        "error-response", "Error response", WARNING,
        "The response has an error code other than 0, at the top level or for one of its topics, partitions or groups.",
        "Each error has its cause: the message says what the client should do. Two are steps of the protocol, and "
        "notes: MEMBER_ID_REQUIRED gives a new member its id (KIP-394), UNSUPPORTED_VERSION in response to ApiVersions "
        "names what the broker supports (KIP-511). Others are routine: COORDINATOR_NOT_AVAILABLE while the offsets "
        "topic is being created.",
        "Do as the message says (all errors: kdissect explain errors). Retriable ones go away if the client backs off "
        "(retry.backoff.ms) and refreshes its metadata.",
    ),
    Explanation(
        "unanswered", "No response", WARNING,
        "The capture has no response to this request.",
        "The request was still being processed when the capture ended or the connection was closed, the capture lost "
        "the response, or the broker never responded: it closes the connection on requests that it can't read.",
        "At the end of a capture it is normal, and a note for APIs whose response may wait: a Fetch for records, a "
        "JoinGroup for other members. Otherwise look at what ended the connection, and at the client's "
        "request.timeout.ms. A consumer that closes normally has a Fetch without a response.",
    ),
    Explanation(
        "orphan", "A response without its request", WARNING,
        "The capture has no request with the correlation id of this response.",
        "The capture began after the request was sent, lost it, or has one direction only. The API and version were "
        "inferred from the bytes of the response and from the rest of the conversation.",
        _CAPTURE_AGAIN + " If you know the API and version, give them: --response Fetch:12.",
    ),
    Explanation(
        "inferred", "API and version inferred", NOTE,
        "The request of this response is missing, so its API and version were inferred from its bytes. The message "
        "says how certain that is, and what else the bytes fit.",
        "A response has neither API nor version: only its request does, and the capture does not have it.",
        "Trust it as far as the message says, or give the API and version: --response API:VERSION.",
    ),
    Explanation(
        "no-response-expected", "Sent with acks=0", NOTE,
        "A Produce request with acks=0: the broker never responds to it, not even with an error.",
        "The producer has acks=0 (request.required.acks=0 in librdkafka): it considers a record sent once it is in the "
        "socket buffer.",
        "Fine for records that may be lost. Otherwise set acks=all and enable.idempotence=true: with acks=0 nobody "
        "learns that a record was rejected or lost.",
    ),
    Explanation(
        "cut-short", "Truncated response", ERROR,
        "The connection was closed in the middle of this response.",
        "The client or the broker stopped or was killed, or something between them closed the connection.",
        "See which side sent RST or FIN, and read its log at this time. Clients repeat the request.",
    ),
    Explanation(
        "incomplete-frame", "Frame not captured in full", ERROR,
        "Some bytes of this frame are missing from the capture. The part before the gap is shown.",
        "The capture dropped packets, has a snap length, or ended in the middle; or the connection did.",
        _CAPTURE_AGAIN,
    ),
    Explanation(
        "gap", "Missing bytes", ERROR,
        "TCP's sequence numbers show that bytes were sent here that the capture does not have.",
        "The capture dropped packets, or sees only one of several network paths. If the receiver acknowledged the "
        "bytes, as it usually did, then the capture lost them and not the network.",
        _CAPTURE_AGAIN,
    ),
    Explanation(
        "unparsed", "Bytes that are not a frame", ERROR,
        "Bytes of a Kafka connection in which no frame was found.",
        "They follow a gap that contains the size of a frame, or they are not Kafka.",
        "Reading continues at the next valid frame. Look at the rows before this one. Other protocols on Kafka's port "
        "are named if they are recognized.",
    ),
    Explanation(
        "tls", "Encrypted", WARNING,
        "The connection is TLS, and its keys are not known: its content can't be read.",
        "Both sides speak TLS, or the capture does not have the beginning: the listener is SSL or SASL_SSL. A client "
        "that speaks TLS on a plain listener is tls-on-plain-port.",
        "Log the keys while you capture, at either end, and open the capture with --keylog FILE. Java, broker or "
        "client: KAFKA_OPTS=-javaagent:extract-tls-secrets-4.0.0.jar=FILE (Maven: name.neykov). With librdkafka log "
        "at the broker: it has no key log. Python: SSLKEYLOGFILE=FILE, if the client's context is from "
        "ssl.create_default_context, as aiokafka's is; to kafka-python give an ssl_context with keylog_filename. Go "
        "(franz-go, sarama, kafka-go): KeyLogWriter in the tls.Config. Node (kafkajs): node --tls-keylog=FILE. Rust "
        "(rustls): key_log = Arc::new(KeyLogFile::new()), and SSLKEYLOGFILE. Programs with OpenSSL or Go, as they are: "
        "eCapture in mode keylog, on Linux as root. Or capture on a plain listener.",
    ),
    Explanation(
        "tls-on-plain-port", "TLS on a plain listener", ERROR,
        "The client begins a TLS handshake, and the server closes the connection without a byte.",
        "The listener is PLAINTEXT or SASL_PLAINTEXT, but the client has security.protocol=SSL or SASL_SSL. The broker "
        "reads the beginning of the handshake as a size, which exceeds socket.request.max.bytes.",
        "Set security.protocol=PLAINTEXT (SASL_PLAINTEXT with a login), or use the port of an SSL listener: the "
        "broker's listeners and listener.security.protocol.map say which port has which.",
    ),
    Explanation(
        "plain-on-tls-port", "Plain Kafka on a TLS listener", ERROR,
        "The client sends Kafka requests that are not encrypted, and the server responds in TLS, mostly with an alert.",
        "The listener is SSL or SASL_SSL, but the client has security.protocol=PLAINTEXT, which is the default, or "
        "SASL_PLAINTEXT.",
        "Set security.protocol=SSL (SASL_SSL with a login), and ssl.truststore.location (ssl.ca.location in "
        "librdkafka) if the broker's certificate is not from a public CA. Or use the port of a PLAINTEXT listener.",
    ),
    Explanation(
        "tls-alert", "TLS handshake failed", ERROR,
        "One side ended the TLS handshake with an alert, which names the reason.",
        "With unknown_ca, certificate_unknown and bad_certificate the certificate is not trusted or not valid; "
        "with handshake_failure and protocol_version no version or cipher is in common, or a client certificate is "
        "missing. With TLS 1.3 most alerts are encrypted: --keylog shows them.",
        "Do as the message says: ssl.truststore.location has the CAs that a side trusts, ssl.keystore.location its own "
        "certificate. openssl s_client -connect HOST:PORT shows what a broker presents.",
    ),
    Explanation(
        "not-a-broker", "Server of another protocol", ERROR,
        "The client sends Kafka requests, and the server responds in another protocol.",
        "The setting bootstrap.servers, or a proxy, names the port of another service: an HTTP one such as a schema "
        "registry, Kafka Connect or a metrics endpoint.",
        "Correct bootstrap.servers: it needs the address of a broker's listener, 9092 unless configured otherwise.",
    ),
    Explanation(
        "version-fallback", "ApiVersions response in version 0", NOTE,
        "The broker does not support the requested version of ApiVersions, and responded with a body of version 0 and "
        "UNSUPPORTED_VERSION.",
        "The client is newer than the broker. KIP-511 specifies this: the client reads the response in version 0, "
        "whatever version it requested.",
        "Nothing: the client should repeat the request in a version that the response names. One that closes the "
        "connection instead does not implement KIP-511.",
    ),
    Explanation(
        "unknown-api", "Unknown API", WARNING,
        "The request's API key is in none of the releases that this program knows.",
        "A newer release of Kafka, another vendor's broker with additional APIs, or bytes that are not Kafka's.",
        "Import the release: kdissect schema import kafka-clients-….jar.",
    ),
    Explanation(
        "unknown-version", "Unknown version", WARNING,
        "The API is known but not this version. If the newest known layout fits the bytes, it was used.",
        "One side runs a newer release of Kafka than this program knows, or one that removed this version.",
        "Import the release: kdissect schema import kafka-clients-….jar.",
    ),
    Explanation(
        "other-layout", "Same version, different layout", NOTE,
        "The message has the layout that an earlier release had for this version; later releases changed it.",
        "The version was a preview when that release came out (KIP-848 was one).",
        "Nothing is needed to read it. Clients and brokers of the two releases can't use this API together.",
    ),
    Explanation(
        "malformed", "Malformed message", ERROR,
        "The bytes do not fit the layout of this API and version: for example, a length runs past the end.",
        "A bug of the sender, damage, a part of the stream that is missing from the capture, or a response that was "
        "paired with the wrong request.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "trailing-bytes", "Bytes after the last field", WARNING,
        "Bytes follow the last field of the message.",
        "The sender has more fields in this version than Kafka does, or a wrong size.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "masked", "Masked as a whole", NOTE,
        "Bytes that may hold a password, a token or a key, and could not be understood well enough to mask only that.",
        "A message that carries secrets is cut, damaged, or of an unknown version; or a connection that logs in"
        " has a message like that, or bytes that are none.",
        "Pass --show-secrets to see the bytes.",
    ),
    Explanation(
        "bad-batch", "Invalid record batch", ERROR,
        "The bytes of a records field are neither a batch of magic 2 nor a message of magic 0 or 1.",
        "Damage, another vendor's codec or magic, or a wrong size.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "bad-record", "Invalid record", ERROR,
        "The records of a batch do not end where the batch does, or one of them can't be read.",
        "A count or a length is wrong, or the compressed bytes are something else.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "bad-crc", "Wrong checksum", ERROR,
        "The checksum of a batch or message is not that of its bytes.",
        "Bytes changed after the checksum was computed: in a faulty network card, memory or disk, or in a proxy that "
        "rewrites batches. Or the client computes it wrongly.",
        "Brokers respond with CORRUPT_MESSAGE, and consumers with check.crcs=true reject it. Find out where the "
        "checksum was last correct.",
    ),
    Explanation(
        "bad-compression", "Records can't be decompressed", ERROR,
        "The compressed records of a batch can't be decompressed, or would exceed the size that this program allows.",
        "Damage, an unknown codec, or a batch that is meant to exhaust the reader's memory.",
        "If other programs can read it, it is too large for the limits of this one. Otherwise see who wrote it.",
    ),
    Explanation(
        "over-limit", "Left out: more than is shown of one frame", WARNING,
        "The frame has more records, headers, metrics or fields than this program shows of one. The remaining bytes "
        "are there, without fields.",
        "A very large message, or one that is meant to exhaust the reader's memory.",
        "See who wrote it. The limits are those of dissector/core/limits.py.",
    ),
    Explanation(
        "inconsistent-batch", "Inconsistent batch", WARNING,
        "The header of a batch contradicts its records: counts, offsets, times, or the order of batches.",
        "The producer or a proxy wrote the header wrongly.",
        "Brokers reject some of these with INVALID_RECORD. " + _ASK_THE_WRITER,
    ),
)  # fmt: skip

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
        _CAPTURE_AGAIN,
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

EXPLANATIONS: Final = (*OF_EXCHANGES, *OF_FILES)
