/* Splits many `records` fields into entries with the headers of batches, verifies the checksums of batches, and counts
 * records by these headers: as `entries.split_entries`, `Batch.crc_valid` and `counting.count_records` do.
 *
 * No read is outside the buffer: a field is looked at only where 0 <= start <= end <= size, an entry ends inside its
 * field, and has the bytes that are read of it (`entry_at`). Each entry has a byte at least, so the walk ends. */
#include "kernel.h"
#include "record_entries.h"

enum { MESSAGE_ATTRIBUTES };

/* Fills `counts`, and `codecs` with a bit for each codec, of the fields data[starts[n], ends[n]). A field that ends
 * before it starts is null. Returns how many fields were counted: fewer than `fields` if the next is outside the data. */
int64_t kernel_count_records(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ends,
                             int64_t fields, int64_t *counts, uint8_t *codecs) {
  for (int64_t field = 0; field < fields; field++) {
    int64_t at = starts[field], end = ends[field], next;
    uint64_t count = 0;
    unsigned bits = 0;
    if (at < end && (at < 0 || end > size)) {
      return field;
    }
    for (; at < end; at = next) {
      int kind = entry_at(data, at, end, &next);
      if (kind == ENTRY_BATCH) {
        int64_t records = be_int32(data + at + RECORDS_COUNT_AT);
        count += records > 0 ? (uint64_t)records : 0;
        bits |= 1u << (data[at + ATTRIBUTES_AT + 1] & CODEC_MASK);
      } else if (kind == ENTRY_MESSAGE) {
        count++;
        bits |= 1u << (data[at + MESSAGE_ATTRIBUTES_AT] & CODEC_MASK);
      }
    }
    counts[field] = as_int64(count);
    codecs[field] = (uint8_t)bits;
  }
  return fields;
}

static void read_header(const uint8_t *at, KernelEntry *entry) {
  entry->base_offset = be_int64(at);
  entry->partition_leader_epoch = be_int32(at + PARTITION_LEADER_EPOCH_AT);
  entry->crc = be_uint32(at + CRC_AT);
  entry->attributes = be_int16(at + ATTRIBUTES_AT);
  entry->last_offset_delta = be_int32(at + LAST_OFFSET_DELTA_AT);
  entry->base_timestamp = be_int64(at + BASE_TIMESTAMP_AT);
  entry->max_timestamp = be_int64(at + MAX_TIMESTAMP_AT);
  entry->producer_id = be_int64(at + PRODUCER_ID_AT);
  entry->producer_epoch = be_int16(at + PRODUCER_EPOCH_AT);
  entry->base_sequence = be_int32(at + BASE_SEQUENCE_AT);
  entry->records_count = be_int32(at + RECORDS_COUNT_AT);
  entry->section_start = entry->start + BATCH_HEADER;
  entry->section_end = entry->end;
}

/* Fills `entries` with those of the fields data[starts[n], ends[n]), at most `capacity`, and no more once they have
 * `most_bytes`, from `place` on: the number of a field and where to go on in it, or -1 for its beginning. `place` becomes
 * that of the next entry; at the end of all it is that of the field numbered `fields`. Returns how many entries there
 * are now, or -1 for a field outside the data. */
int64_t kernel_split_records(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ends,
                             int64_t fields, int64_t *place, KernelEntry *entries, int64_t capacity,
                             int64_t most_bytes) {
  int64_t found = 0, bytes = 0;
  for (; place[0] < fields; place[0]++, place[1] = -1) {
    int64_t field = place[0], at = place[1] < 0 ? starts[field] : place[1], end = ends[field], next;
    if (at < end && (at < 0 || end > size)) {
      return -1;
    }
    for (; at < end; at = next) {
      if (found == capacity || bytes >= most_bytes) {
        place[1] = at;
        return found;
      }
      KernelEntry *entry = &entries[found++];
      int kind = entry_at(data, at, end, &next);
      bytes += next - at;
      *entry = (KernelEntry){.field = field, .kind = kind, .start = at, .end = next};
      if (kind == ENTRY_BATCH) {
        read_header(data + at, entry);
      }
    }
  }
  return found;
}

/* Fills `valid` with 1 for each batch with the right checksum, 0 for each other entry. Returns `count`, or the number
 * of an entry that is outside the data. */
int64_t kernel_check_batches(const uint8_t *data, int64_t size, const KernelEntry *entries, int64_t count,
                             uint8_t *valid) {
  for (int64_t n = 0; n < count; n++) {
    const KernelEntry *entry = &entries[n];
    if (entry->start < 0 || entry->end > size || entry->start > entry->end) {
      return n;
    }
    int whole = entry->kind == ENTRY_BATCH && entry->end - entry->start >= BATCH_HEADER;
    valid[n] = whole && kernel_crc32c(data + entry->start + CRC_FROM, entry->end - entry->start - CRC_FROM) == entry->crc;
  }
  return count;
}
