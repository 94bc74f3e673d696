"""Explanations of codes that are reported while a message is read.

`file_explanations` has those about files and connections, `registry` the detectors with theirs.

Invariant: every code that the program emits is explained, here or by its detector. A test checks it.
"""

from typing import Final

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.file_explanations import CAPTURE_AGAIN, OF_FILES

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
_ASK_THE_WRITER: Final = "You cannot fix this; report it, with the bytes of this row, to whoever wrote them."

OF_EXCHANGES: Final = (
    Explanation(
        "error-response", "Error response", WARNING,
        "The response has an error code other than 0, at the top level or for one of its topics, partitions or groups.",
        "Each error has its own cause: the message says what the client should do. Two are steps of the protocol and "
        "are reported as notes: MEMBER_ID_REQUIRED gives a new member its id (KIP-394), and UNSUPPORTED_VERSION in "
        "response to ApiVersions names the versions that the broker supports (KIP-511). Others are routine, such as "
        "COORDINATOR_NOT_AVAILABLE while the offsets topic is being created.",
        "Do as the message says (all errors: kdissect explain errors). Retriable ones go away if the client backs off "
        "(retry.backoff.ms) and refreshes its metadata.",
    ),
    Explanation(
        "unanswered", "No response", NOTE,
        "The capture has no response to this request. Each such row has this note. The cause is a finding of its own, "
        "once for all requests that share it (closed-in-flight, broker-silent and others); on the row that has it, it "
        "replaces this note.",
        "The request was still being processed when the capture ended or the connection was closed, the capture lost "
        "the response, or the broker never responded: it closes the connection if it can't read a request.",
        "At the end of a capture it is normal, especially for APIs whose response may be held back: a Fetch waits for "
        "records, a JoinGroup for other members. Otherwise look at what ended the connection, and at the client's "
        "request.timeout.ms. A consumer that closes normally leaves a Fetch without a response.",
    ),
    Explanation(
        "orphan", "Response without its request", WARNING,
        "The capture has no request with the correlation id of this response.",
        "The capture began after the request was sent, lost the request, or has one direction only. The API and "
        "version were inferred from the bytes of the response and from the rest of the conversation.",
        CAPTURE_AGAIN + " If you know the API and version, give them: --response Fetch:12.",
    ),
    Explanation(
        "response-not-pending", "Response to no request", ERROR,
        "The broker sent a response with a correlation id that no waiting request has, and left a waiting request "
        "without a response; or it sent a second response. The capture has the whole connection, from its beginning "
        "and without a gap.",
        "An in-house broker, a mock or a proxy does not copy the correlation id of the request, or sends a response "
        "twice. The API and version were inferred from the bytes of the response.",
        "Correct the server: a response begins with the correlation id of its request. Kafka's clients close the "
        "connection on any other id, or wait for a response that never comes.",
    ),
    Explanation(
        "inferred", "API and version inferred", NOTE,
        "The request of this response is missing, so its API and version were inferred from its bytes. The message "
        "says how certain that is, and what else the bytes fit.",
        "A response does not carry its API and version: only its request does, and the request is missing from the "
        "capture.",
        "Trust it as far as the message says, or give the API and version: --response API:VERSION.",
    ),
    Explanation(
        "no-response-expected", "Sent with acks=0", NOTE,
        "A Produce request with acks=0: the broker never responds to it, not even with an error.",
        "The producer is configured with acks=0 (request.required.acks=0 in librdkafka): it considers a record sent "
        "once it is in the socket buffer.",
        "Fine for records that may be lost. Otherwise set acks=all and enable.idempotence=true: with acks=0 nobody "
        "learns that a record was rejected or lost.",
    ),
    Explanation(
        "cut-short", "Truncated response", ERROR,
        "The connection was closed in the middle of this response.",
        "The client or the broker stopped or was killed, or a device between them closed the connection.",
        "See which side sent RST or FIN, and read its log for this time. Clients repeat the request.",
    ),
    Explanation(
        "incomplete-frame", "Frame not captured in full", ERROR,
        "Some bytes of this frame are missing from the capture. The part before the gap is shown.",
        "The capture dropped packets, truncated them (snap length), or ended within the frame; or the connection "
        "ended there.",
        CAPTURE_AGAIN,
    ),
    Explanation(
        "gap", "Missing bytes", ERROR,
        "TCP sequence numbers show that bytes were sent here that are missing from the capture.",
        "The capture dropped packets, or sees only one of several network paths. If the receiver acknowledged the "
        "bytes, as it usually did, then the capture lost them and not the network.",
        CAPTURE_AGAIN,
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
        "The connection uses TLS and its keys are not known, so its content can't be decoded.",
        "The listener is SSL or SASL_SSL: both sides speak TLS, or the beginning of the connection is missing from "
        "the capture. For a client that uses TLS on a plaintext listener, see tls-on-plain-port.",
        "Log the keys at either end while you capture, and open the capture with --keylog FILE. Java, broker or "
        "client: KAFKA_OPTS=-javaagent:extract-tls-secrets-4.0.0.jar=FILE (Maven: name.neykov). librdkafka has no key "
        "log: log the keys at the broker. Python: SSLKEYLOGFILE=FILE, if the client's context comes from "
        "ssl.create_default_context, as aiokafka's does; give kafka-python an ssl_context with keylog_filename. Go "
        "(franz-go, sarama, kafka-go): KeyLogWriter in the tls.Config. Node (kafkajs): node --tls-keylog=FILE. Rust "
        "(rustls): key_log = Arc::new(KeyLogFile::new()), and SSLKEYLOGFILE. Unmodified programs with OpenSSL or Go: "
        "eCapture in keylog mode, on Linux as root. Or capture on a plaintext listener.",
    ),
    Explanation(
        "tls-on-plain-port", "TLS on a plaintext listener", ERROR,
        "The client begins a TLS handshake, and the server closes the connection without sending a byte.",
        "The listener is PLAINTEXT or SASL_PLAINTEXT, but the client is configured with security.protocol=SSL or "
        "SASL_SSL. The broker reads the beginning of the handshake as a size, which exceeds socket.request.max.bytes.",
        "Set security.protocol=PLAINTEXT (SASL_PLAINTEXT with a login), or use the port of an SSL listener: listeners "
        "and listener.security.protocol.map in the broker's configuration say which port speaks which protocol.",
    ),
    Explanation(
        "plain-on-tls-port", "Plain Kafka on a TLS listener", ERROR,
        "The client sends unencrypted Kafka requests, and the server responds in TLS, usually with an alert.",
        "The listener is SSL or SASL_SSL, but the client is configured with security.protocol=PLAINTEXT, which is the "
        "default, or SASL_PLAINTEXT.",
        "Set security.protocol=SSL (SASL_SSL with a login), and ssl.truststore.location (ssl.ca.location in "
        "librdkafka) if the broker's certificate is not from a public CA. Or use the port of a PLAINTEXT listener.",
    ),
    Explanation(
        "tls-alert", "TLS handshake failed", ERROR,
        "One side ended the TLS handshake with an alert, which names the reason.",
        "The alerts unknown_ca, certificate_unknown and bad_certificate mean that the certificate is not trusted or "
        "not valid; handshake_failure and protocol_version mean that the sides have no version or cipher suite in "
        "common, or that a client certificate is missing. In TLS 1.3 most alerts are encrypted: --keylog shows them.",
        "Follow the message: ssl.truststore.location holds the CAs that a side trusts, ssl.keystore.location its own "
        "certificate. openssl s_client -connect HOST:PORT shows which certificate a broker presents.",
    ),
    Explanation(
        "not-a-broker", "Server of another protocol", ERROR,
        "The client sends Kafka requests, and the server responds in a different protocol.",
        "The client's bootstrap.servers, or a proxy, has the port of another service, often an HTTP one such as a "
        "schema registry, Kafka Connect or a metrics endpoint.",
        "Correct bootstrap.servers: it needs the address of a broker's listener, by default on port 9092.",
    ),
    Explanation(
        "version-fallback", "ApiVersions response in version 0", NOTE,
        "The broker does not support the requested version of ApiVersions, and responded in version 0 with "
        "UNSUPPORTED_VERSION.",
        "The client is newer than the broker. KIP-511 specifies this: the client reads the response in version 0, "
        "whatever version it requested.",
        "Nothing: the client should repeat the request in a version that the response names. A client that closes the "
        "connection instead does not implement KIP-511.",
    ),
    Explanation(
        "unknown-api", "Unknown API", WARNING,
        "No release that this program knows has the request's API key.",
        "One side runs a newer release of Kafka or another vendor's software with additional APIs, or the bytes are "
        "not Kafka.",
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
        "The bytes do not fit the layout of this API and version: for example, a length exceeds the frame.",
        "A bug in the sender, damage, a part of the stream that is missing from the capture, or a response that was "
        "paired with the wrong request.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "reads-as", "Message with another layout", NOTE,
        "The message does not fit the layout of its API and version, but fits another one to its last byte: another "
        "version, another version of the header, no tagged fields, lengths written in another way.",
        "The sender uses this layout for the version that it announced: either a broker does not know the version and "
        "responds in one that it knows, or an in-house client or server has a bug. All layouts that the bytes fit are "
        "named. Where none fits, at most eight such messages of each API and version are searched on a connection.",
        "Correct the sender as the message says, or use a version that it has.",
    ),
    Explanation(
        "trailing-bytes", "Bytes after the last field", WARNING,
        "Bytes follow the last field of the message.",
        "The sender writes more fields in this version than Kafka does, or the frame's size is wrong.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "masked", "Masked as a whole", NOTE,
        "Bytes that may hold a password, a token or a key, and could not be decoded well enough to mask only the "
        "secret. The header, the first numbers and the reason (malformed, trailing-bytes) are shown.",
        "A message that carries secrets is truncated, damaged, or of an unknown version; or a connection with a login "
        "has such a message, or bytes that are not a message.",
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
        "A count or a length is wrong, or the compressed bytes are not records.",
        _ASK_THE_WRITER,
    ),
    Explanation(
        "bad-crc", "Wrong checksum", ERROR,
        "The checksum of a batch or message does not match its bytes.",
        "Bytes changed after the checksum was computed: in a faulty network card, memory or disk, or in a proxy that "
        "rewrites batches. Or the client computes it wrongly.",
        "Brokers respond with CORRUPT_MESSAGE, and consumers with check.crcs=true reject the batch. Find out where "
        "the checksum was last correct.",
    ),
    Explanation(
        "bad-compression", "Records can't be decompressed", ERROR,
        "The compressed records of a batch can't be decompressed, or would exceed the size that this program allows.",
        "Damage, an unknown codec, or a batch made to exhaust the reader's memory.",
        "If other programs can read it, it exceeds the limits of this program. Otherwise find out what wrote it.",
    ),
    Explanation(
        "over-limit", "Frame shown in part", WARNING,
        "The frame has more records, headers, metrics or fields than this program decodes in one frame. The remaining "
        "bytes are shown without fields.",
        "A very large message, or one made to exhaust the reader's memory.",
        "Find out what wrote it. The limits are in dissector/core/limits.py.",
    ),
    Explanation(
        "inconsistent-batch", "Inconsistent batch", WARNING,
        "The header of a batch contradicts its records: counts, offsets, times, or the order of batches.",
        "The producer or a proxy wrote the header wrongly.",
        "Brokers reject some of these with INVALID_RECORD. " + _ASK_THE_WRITER,
    ),
)  # fmt: skip

EXPLANATIONS: Final = (*OF_EXCHANGES, *OF_FILES)
