/* Writes a `records` field as JSON, as `records/to_json.py` does: batches of magic 2 that can be read to their end.
 * Messages of old formats, control batches, masked ones, damaged ones, and what may hold a secret are for the careful way.
 *
 * Why no byte outside the field is read: `entry_at` gives entries that tile it, and a batch that has its whole header.
 * Each record ends inside its section, each part of it inside the record: `at <= end`, and a length is compared with
 * end - at before it is added. A compressed batch is read from the section that the caller gives, with its size, or
 * from the scratch, as far as it was filled. */
#include "json.h"
#include "record_entries.h"
#include "secrets.h"
#include "varint.h"

enum { LEAST_TEXT = 6 };

/* NULL for the number of no codec. */
static const char *const codecs[CODEC_MASK + 1] = {CODEC_NAMES};

#define TEXT(literal) write_text(out, literal, (int64_t)sizeof literal - 1)
#define TRY(call_)        \
  do {                    \
    int tried = (call_);  \
    if (tried) return tried; \
  } while (0)
#define NUMBER(name, value)             \
  do {                                  \
    TRY(TEXT("\"" name "\":"));         \
    TRY(write_int(out, value));         \
    TRY(TEXT(","));                     \
  } while (0)

typedef struct {
  const uint8_t *data;
  int64_t at, end;
} Reader;

/* A varint of at most 32 bits. */
static inline int read_uint32(Reader *in, uint64_t *value) {
  if (in->at < in->end && in->data[in->at] < 0x80) {
    *value = in->data[in->at++];
    return 1;
  }
  return uvarint35(in->data, &in->at, in->end, value) && *value <= UINT32_MAX;
}

/* A varint of at most 64 bits. */
static inline int read_uint64(Reader *in, uint64_t *value) {
  *value = 0;
  for (int n = 0; n < 10 && in->at < in->end; n++) {
    uint8_t byte = in->data[in->at++];
    if (n == 9 && byte > 1) return 0;
    *value |= (uint64_t)(byte & 0x7F) << (7 * n);
    if (byte < 0x80) return 1;
  }
  return 0;
}

static inline int64_t zigzag(uint64_t value) {
  return as_int64(value >> 1 ^ (0 - (value & 1)));
}

static inline int add_checked(int64_t base, int64_t delta, int64_t *sum) {
  *sum = as_int64((uint64_t)base + (uint64_t)delta);
  return delta < 0 ? *sum < base : *sum >= base;
}

/* The size of a key, a value or a name, -1 for null; its bytes are there. */
static inline int read_size(Reader *in, int64_t *size) {
  uint64_t value;
  if (!read_uint32(in, &value)) return 0;
  *size = value & 1 ? -1 : (int64_t)(value >> 1);
  return *size <= in->end - in->at;
}

static int write_bytes(JsonOut *out, Reader *in) {
  int64_t size;
  if (!read_size(in, &size)) return CAREFUL;
  if (size < 0) return TEXT("null");
  TRY(write_hex(out, in->data + in->at, size));
  in->at += size;
  return WRITTEN;
}

static int write_headers(JsonOut *out, Reader *in, int64_t most, int64_t *written) {
  uint64_t count;
  if (!read_uint32(in, &count) || count & 1 || count > (uint64_t)(in->end - in->at)) return CAREFUL;
  count >>= 1;
  if ((int64_t)count > most) return CAREFUL;
  *written = (int64_t)count;
  for (uint64_t n = 0; n < count; n++) {
    int64_t size;
    if (!read_size(in, &size) || size < 0) return CAREFUL;
    TRY(n ? TEXT(",{\"key\":") : TEXT("{\"key\":"));
    TRY(write_string(out, in->data + in->at, size));
    in->at += size;
    TRY(TEXT(",\"value\":"));
    TRY(write_bytes(out, in));
    TRY(TEXT("}"));
  }
  return WRITTEN;
}

static int write_record(JsonOut *out, const uint8_t *batch, Reader *section, int64_t most_headers, int64_t *headers) {
  uint64_t size, time, offset_delta;
  int64_t offset, timestamp, append_time = batch[ATTRIBUTES_AT + 1] & LOG_APPEND_TIME;
  if (!read_uint32(section, &size) || size & 1 || size >> 1 > (uint64_t)(section->end - section->at)) return CAREFUL;
  Reader in = {section->data, section->at, section->at + (int64_t)(size >> 1)};
  if (in.at == in.end) return CAREFUL;
  in.at++; /* attributes, which have no bits yet */
  if (!read_uint64(&in, &time) || !read_uint32(&in, &offset_delta)) return CAREFUL;
  if (!add_checked(be_int64(batch), zigzag(offset_delta), &offset)) return CAREFUL;
  if (append_time) timestamp = be_int64(batch + MAX_TIMESTAMP_AT);
  else if (!add_checked(be_int64(batch + BASE_TIMESTAMP_AT), zigzag(time), &timestamp)) return CAREFUL;
  TRY(TEXT("{"));
  NUMBER("offset", offset);
  NUMBER("timestamp", timestamp);
  TRY(TEXT("\"key\":"));
  TRY(write_bytes(out, &in));
  TRY(TEXT(",\"value\":"));
  TRY(write_bytes(out, &in));
  TRY(TEXT(",\"headers\":["));
  TRY(write_headers(out, &in, most_headers, headers));
  if (in.at != in.end) return CAREFUL;
  TRY(TEXT("]"));
  if (append_time) {
    TRY(TEXT(",\"timestamp_delta\":"));
    TRY(write_int(out, zigzag(time)));
  }
  section->at = in.end;
  return TEXT("}");
}

static int write_head(JsonOut *out, const uint8_t *batch, int64_t size) {
  int64_t attributes = be_int16(batch + ATTRIBUTES_AT);
  const char *codec = codecs[attributes & CODEC_MASK];
  int is_valid = kernel_crc32c(batch + CRC_FROM, size - CRC_FROM) == be_uint32(batch + CRC_AT);
  TRY(TEXT("{"));
  NUMBER("base_offset", be_int64(batch));
  NUMBER("batch_length", be_int32(batch + BATCH_LENGTH_AT));
  NUMBER("partition_leader_epoch", be_int32(batch + PARTITION_LEADER_EPOCH_AT));
  NUMBER("magic", 2);
  NUMBER("crc", be_uint32(batch + CRC_AT));
  TRY(is_valid ? TEXT("\"crc_valid\":true,") : TEXT("\"crc_valid\":false,"));
  NUMBER("attributes", attributes);
  TRY(TEXT("\"compression\":\""));
  TRY(write_text(out, codec, (int64_t)strlen(codec)));
  TRY(attributes & LOG_APPEND_TIME ? TEXT("\",\"timestamp_type\":\"LogAppendTime\"")
                               : TEXT("\",\"timestamp_type\":\"CreateTime\""));
  TRY(attributes & TRANSACTIONAL ? TEXT(",\"transactional\":true,") : TEXT(",\"transactional\":false,"));
  TRY(attributes & CONTROL ? TEXT("\"control\":true,") : TEXT("\"control\":false,"));
  NUMBER("last_offset_delta", be_int32(batch + LAST_OFFSET_DELTA_AT));
  NUMBER("base_timestamp", be_int64(batch + BASE_TIMESTAMP_AT));
  NUMBER("max_timestamp", be_int64(batch + MAX_TIMESTAMP_AT));
  NUMBER("producer_id", be_int64(batch + PRODUCER_ID_AT));
  NUMBER("producer_epoch", be_int16(batch + PRODUCER_EPOCH_AT));
  NUMBER("base_sequence", be_int32(batch + BASE_SEQUENCE_AT));
  NUMBER("records_count", be_int32(batch + RECORDS_COUNT_AT));
  return WRITTEN;
}

static int is_masked(const uint8_t *section, int64_t size) {
  int64_t n = 0;
  while (n < size && section[n] == '*') n++;
  return size && n == size;
}

/* Whether an entry that is cut may show texts of a compressed section: which, the careful way says. */
static int may_show(const JsonRecords *records, const uint8_t *data, int64_t size) {
  if (!records->secrets || size <= BATCH_HEADER || !(be_int16(data + ATTRIBUTES_AT) & CODEC_MASK)) return 0;
  for (int64_t at = BATCH_HEADER, run = 0; at < size; at++) {
    run = data[at] >= ' ' && data[at] <= '~' ? run + 1 : 0;
    if (run == LEAST_TEXT) return 1;
  }
  return 0;
}

static inline int may_hold(const JsonRecords *records, const uint8_t *data, int64_t size) {
  return records->secrets && may_hold_secret(data, size, records->secrets);
}

static inline int64_t least(int64_t one, int64_t other) {
  return one < other ? one : other;
}

static int write_batch(JsonOut *out, const uint8_t *batch, int64_t size, JsonRecords *budget) {
  int64_t attributes = be_int16(batch + ATTRIBUTES_AT), count = be_int32(batch + RECORDS_COUNT_AT);
  int64_t wire_size = size - BATCH_HEADER;
  Reader section = {batch + BATCH_HEADER, 0, wire_size};
  int codec = attributes & CODEC_MASK;
  if (attributes & CONTROL || !codecs[codec] || is_masked(section.data, wire_size)) return CAREFUL;
  if (codec) budget->is_compressed = 1;
  if (codec && budget->section < budget->section_end) {
    section.data = (const uint8_t *)(uintptr_t)budget->sections[budget->section];
    section.end = budget->section_sizes[budget->section++];
  } else if (codec) {
    int64_t plain = codec == CODEC_LZ4 && !budget->sections
                        ? lz4_frame(section.data, wire_size, budget->scratch, least(budget->scratch_size, budget->plain_left))
                        : -1;
    if (plain < 0) return COMPRESSED;
    budget->plain_left -= plain;
    if (plain > budget->packed_ratio * wire_size) budget->expanded += plain - budget->packed_ratio * wire_size;
    section.data = budget->scratch;
    section.end = plain;
  }
  if (count < 0 || count > section.end / LEAST_RECORD) return CAREFUL;
  if (may_hold(budget, section.data, section.end)) return CAREFUL;
  if (count > least(budget->left, budget->packed + wire_size)) return CAREFUL;
  budget->packed += wire_size - count;
  budget->left -= count;
  TRY(write_head(out, batch, size));
  if (codec) {
    TRY(TEXT("\"compressed\":"));
    TRY(write_hex(out, batch + BATCH_HEADER, wire_size));
    TRY(TEXT(","));
  }
  TRY(TEXT("\"records\":["));
  int64_t all_headers = 0, most_headers = least(budget->left, budget->packed);
  for (int64_t n = 0; n < count; n++) {
    int64_t headers = 0;
    if (n) TRY(TEXT(","));
    TRY(write_record(out, batch, &section, most_headers - all_headers, &headers));
    all_headers += headers;
  }
  if (section.at != section.end) return CAREFUL;
  budget->packed -= all_headers;
  budget->left -= all_headers;
  return TEXT("]}");
}

int write_records(JsonOut *out, const uint8_t *data, int64_t size, JsonRecords *budget) {
  int64_t next = size;
  TRY(TEXT("{\"size\":"));
  TRY(write_int(out, size));
  TRY(TEXT(",\"batches\":["));
  for (int64_t at = 0; at < size; at = next) {
    int kind = entry_at(data, at, size, &next);
    if (kind == ENTRY_MESSAGE) return CAREFUL;
    if (kind != ENTRY_BATCH) { /* the last one */
      if (may_hold(budget, data + at, size - at) || may_show(budget, data + at, size - at)) return CAREFUL;
      TRY(kind == ENTRY_TRUNCATED ? TEXT("],\"truncated\":{\"size\":") : TEXT("],\"unknown\":{\"size\":"));
      TRY(write_int(out, size - at));
      TRY(TEXT(",\"data\":"));
      TRY(write_hex(out, data + at, size - at));
      return TEXT("}}");
    }
    if (at) TRY(TEXT(","));
    TRY(write_batch(out, data + at, next - at, budget));
  }
  return TEXT("]}");
}

/* What `tables/packing.py` leaves of a batch. Whether its records can be read is not looked at. */
static int write_sizes(JsonOut *out, const uint8_t *batch, int64_t size, JsonRecords *found) {
  int64_t attributes = be_int16(batch + ATTRIBUTES_AT);
  int codec = attributes & CODEC_MASK;
  if (attributes & CONTROL || !codecs[codec] || is_masked(batch + BATCH_HEADER, size - BATCH_HEADER)) return CAREFUL;
  if (codec) found->is_compressed = 1;
  TRY(TEXT("{"));
  NUMBER("base_offset", be_int64(batch));
  NUMBER("batch_length", be_int32(batch + BATCH_LENGTH_AT));
  TRY(TEXT("\"compression\":\""));
  TRY(write_text(out, codecs[codec], (int64_t)strlen(codecs[codec])));
  TRY(TEXT("\",\"records_count\":"));
  TRY(write_int(out, be_int32(batch + RECORDS_COUNT_AT)));
  return TEXT("}");
}

int write_packed_records(JsonOut *out, const uint8_t *data, int64_t size, JsonRecords *found) {
  int64_t next = size;
  if (may_hold(found, data, size)) return CAREFUL; /* what is compressed is looked at by who reads it */
  TRY(TEXT("{\"size\":"));
  TRY(write_int(out, size));
  TRY(TEXT(",\"batches\":["));
  for (int64_t at = 0; at < size; at = next) {
    int kind = entry_at(data, at, size, &next);
    if (kind == ENTRY_MESSAGE) return CAREFUL;
    if (kind != ENTRY_BATCH && may_show(found, data + at, size - at)) return CAREFUL;
    if (kind != ENTRY_BATCH) break; /* the last one, which is in the bytes */
    if (at) TRY(TEXT(","));
    TRY(write_sizes(out, data + at, next - at, found));
  }
  TRY(TEXT("]"));
  if (size) {
    TRY(TEXT(",\"bytes\":"));
    TRY(write_hex(out, data, size));
  }
  return TEXT("}");
}

/* The headers of a field's batches, control batches too, for tables that keep no records. What is no batch is for Python.
 */
int write_heads(JsonOut *out, const uint8_t *data, int64_t size, JsonRecords *found) {
  int64_t next = size;
  if (may_hold(found, data, size)) return CAREFUL;
  TRY(TEXT("{\"size\":"));
  TRY(write_int(out, size));
  TRY(TEXT(",\"batches\":["));
  for (int64_t at = 0; at < size; at = next) {
    if (entry_at(data, at, size, &next) != ENTRY_BATCH) return CAREFUL;
    const uint8_t *batch = data + at;
    int64_t attributes = be_int16(batch + ATTRIBUTES_AT);
    if (!codecs[attributes & CODEC_MASK] || is_masked(batch + BATCH_HEADER, next - at - BATCH_HEADER)) return CAREFUL;
    if (attributes & CODEC_MASK) found->is_compressed = 1;
    if (at) TRY(TEXT(","));
    TRY(write_head(out, batch, next - at));
    out->at--; /* the comma behind the last number */
    TRY(TEXT("}"));
  }
  return TEXT("]}");
}

/* Lists the compressed batches of the fields at `fields`, in their order: the field, the codec, the address and the size
 * of the section. Returns how many there are; those behind `capacity` are not listed. */
KERNEL_API int64_t kernel_compressed_sections(const uint64_t *fields, const int64_t *sizes, int64_t count, int64_t capacity,
                                              int64_t *field, int64_t *codec, uint64_t *address, int64_t *section_size) {
  int64_t found = 0;
  for (int64_t n = 0; n < count; n++) {
    const uint8_t *data = (const uint8_t *)(uintptr_t)fields[n];
    int64_t next;
    for (int64_t at = 0; at < sizes[n]; at = next) {
      int kind = entry_at(data, at, sizes[n], &next);
      int found_codec = kind == ENTRY_BATCH ? be_int16(data + at + ATTRIBUTES_AT) & CODEC_MASK : 0;
      if (!found_codec) continue;
      if (found < capacity) {
        field[found] = n;
        codec[found] = found_codec;
        address[found] = fields[n] + (uint64_t)(at + BATCH_HEADER);
        section_size[found] = next - at - BATCH_HEADER;
      }
      found++;
    }
  }
  return found;
}
