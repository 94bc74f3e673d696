/* What Python has, too: made by shared.py, which names the modules. */
#ifndef SHARED_H
#define SHARED_H

#define OPERATION END = 0, FIXED = 1, VARIABLE = 2, ARRAY = 3, NEXT = 4, STRUCT = 5, TAGS = 6, TAG = 7, TAG_END = 8, TAGGED_STRUCT = 9, LITERAL = 10
#define FLAGS COMPACT = 1, NULLABLE = 2, KNOWN_TAGS = 4
#define MARK NONE = 0, TOPIC_ID = 4, TOPIC_NAME = 8, REPORTED = 16, ERROR_CODE = 32, OPENED = 64
#define WANT NOTHING = 0, VALUES = 1, NONZERO = 2, KEY = 4, CHECKED = 8, OUTLINE = 16
#define SCALAR BOOL = 0, INT8 = 1, INT16 = 2, UINT16 = 3, INT32 = 4, UINT32 = 5, INT64 = 6, FLOAT64 = 7, UUID = 8
#define LENGTH STRING = 0, BYTES = 1, RECORDS = 2
#define PROGRAM WIDTH = 6
#define SCOPE SCOPE_TOPIC = 0, SCOPE_NAME = 1, SCOPE_TOPIC_ID = 2, SCOPE_GROUP_ID = 3, SCOPE_PROTOCOL_TYPE = 4, SCOPE_PROTOCOL_NAME = 5, SCOPE_PROTOCOL_DATA = 6, SCOPE_PROTOCOL = 7, SCOPE_NAMES = 8
#define SHRED_ERROR NONE = 0, ENDS_INSIDE = 1, PAST_THE_END = 2, IS_NULL = 3, BAD_VARINT = 4, TAG_SIZE = 5, TRAILING = 6, TOO_DEEP = 7, REPEATED_TAG = 8, UNKNOWN_TAG = 9, TOO_LARGE = 10
#define OUTCOME WRITTEN = 0, CAREFUL = 1, COMPRESSED = 2
#define CELL EMPTY = 0, NUMBER = 1, TEXT = 2
#define RECORDS_ENTRY LOG_OVERHEAD = 12, SIZE_AT = 8, LEAST_RECORD = 7
#define ENTRY_KIND ENTRY_BATCH = 0, ENTRY_MESSAGE = 1, ENTRY_TRUNCATED = 2, ENTRY_UNKNOWN = 3
#define MESSAGE_ATTRIBUTES MESSAGE_ATTRIBUTES_AT = 17
#define BATCH_ERROR NONE = 0, NOT_A_BATCH = 1, REFUSED = 2, DAMAGED = 3, TOO_WIDE = 4
#define BATCH_OFFSET BASE_OFFSET_AT = 0, BATCH_LENGTH_AT = 8, PARTITION_LEADER_EPOCH_AT = 12, MAGIC_AT = 16, CRC_AT = 17, ATTRIBUTES_AT = 21, LAST_OFFSET_DELTA_AT = 23, BASE_TIMESTAMP_AT = 27, MAX_TIMESTAMP_AT = 35, PRODUCER_ID_AT = 43, PRODUCER_EPOCH_AT = 51, BASE_SEQUENCE_AT = 53, RECORDS_COUNT_AT = 57, BATCH_HEADER = 61, CRC_FROM = 21
#define BATCH_ATTRIBUTE LOG_APPEND_TIME = 8, TRANSACTIONAL = 16, CONTROL = 32, CODEC_MASK = 7
#define CODEC CODEC_NONE = 0, CODEC_GZIP = 1, CODEC_SNAPPY = 2, CODEC_LZ4 = 3, CODEC_ZSTD = 4
#define LEAST_SIZES 14, 22, 49 /* of an entry, by magic */
#define CODEC_NAMES [0] = "none", [1] = "gzip", [2] = "snappy", [3] = "lz4", [4] = "zstd" /* by number */
#define ENTRY_FIELDS int64_t field, kind, start, end, base_offset, partition_leader_epoch, crc, attributes, last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, records_count, section_start, section_end, error, error_at, first_record, records, first_header, headers;
#define REPORT_FIELDS int64_t reported, error, errors, has_damaged_log, records_fields, has_compressed, names_topics;

#endif
