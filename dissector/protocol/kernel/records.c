/* Reads the records of many batches into columns, as `batch.read_records` does one batch at a time.
 *
 * No access is outside a buffer. Reading: a section is read only where 0 <= section_start <= section_end <= size. A
 * record ends inside its section, and each of its fields inside the record: a length is compared with the bytes that
 * are left of the record before it is added, as is the size of a record with those of the section. `varint` reads a byte
 * only before the end that it is given. Writing: a batch begins only where there is room for all records that its
 * header counts, which is at most one for LEAST_RECORD bytes; each header of a record is preceded by a check for room.
 *
 * No number overflows: lengths have 32 bits, all else is 64 bits wide, and the sums of base and delta are checked.
 *
 * A batch adds all of its records or none. One in error gets a code and a place; Python reads it the careful way. */
#include "kernel.h"
#include "record_entries.h"

#include <string.h>

enum { NULL_SIZE = -1 };
enum { BATCH_ERROR };
enum { FULL = -1 };

/* The columns of a table of records, each as long as the table's capacity: as in `columns.RecordColumns`. */
enum { ENTRY, OFFSET, TIMESTAMP, KEY, KEY_SIZE, VALUE, VALUE_SIZE, FIRST_HEADER, HEADERS };
enum { HEADER_KEY, HEADER_KEY_SIZE, HEADER_VALUE, HEADER_VALUE_SIZE };

typedef struct {
  int64_t *columns, capacity, filled;
} Table;

/* Reads an unsigned varint of at most `most` bytes; returns where it ends, or NULL if it does not end before `end`. */
static inline const uint8_t *varint(const uint8_t *at, const uint8_t *end, int most, uint64_t *value) {
  if (at < end && *at < 0x80) { /* nearly all have one byte */
    *value = *at;
    return at + 1;
  }
  *value = 0;
  for (int n = 0; n < most && at < end; n++, at++) {
    *value |= (uint64_t)(*at & 0x7F) << 7 * n; /* n <= 9: of the tenth byte one bit stays */
    if (*at < 0x80) {
      return at + 1;
    }
  }
  return NULL;
}

static inline int64_t zigzag(uint64_t value) {
  return as_int64(value >> 1 ^ (0 - (value & 1)));
}

static inline int adds(int64_t base, int64_t delta, int64_t *sum) {
  *sum = as_int64((uint64_t)base + (uint64_t)delta);
  return delta < 0 ? *sum < base : *sum >= base;
}

/* Reads a size of 32 bits, which is null where it is negative, and the bytes that follow; returns where they end, or
 * NULL if that is behind `end`. */
static inline const uint8_t *sized(const uint8_t *at, const uint8_t *end, const uint8_t *data, int64_t *place,
                                   int64_t *size) {
  uint64_t value;
  at = varint(at, end, 5, &value);
  if (!at) {
    return NULL;
  }
  *place = at - data;
  if (value & 1) {
    *size = NULL_SIZE;
    return at;
  }
  value = (uint32_t)value >> 1;
  if (value > (uint64_t)(end - at)) {
    return NULL;
  }
  *size = (int64_t)value;
  return at + value;
}

/* Reads the headers of a record, which ends at `end`. Returns NONE, DAMAGED, REFUSED or FULL. */
static int read_headers(const uint8_t **from, const uint8_t *end, const uint8_t *data, int64_t count, Table *headers) {
  const uint8_t *at = *from;
  if (count > headers->capacity - headers->filled) {
    return FULL;
  }
  for (int64_t n = 0; n < count; n++) {
    int64_t *row = headers->columns + headers->filled + n, capacity = headers->capacity;
    if (!(at = sized(at, end, data, row + HEADER_KEY * capacity, row + HEADER_KEY_SIZE * capacity)) ||
        row[HEADER_KEY_SIZE * capacity] == NULL_SIZE ||
        !(at = sized(at, end, data, row + HEADER_VALUE * capacity, row + HEADER_VALUE_SIZE * capacity))) {
      return DAMAGED;
    }
    *from = at;
  }
  headers->filled += count;
  return NONE;
}

/* Reads the records of a batch, `number` among the entries. Returns NONE, or a code with the place in *wrong. */
static int read_batch(const uint8_t *data, const KernelEntry *entry, int64_t number, int64_t most_headers,
                      Table *records, Table *headers, int64_t *wrong) {
  const uint8_t *at = data + entry->section_start, *stop = data + entry->section_end;
  int64_t count = entry->records_count, capacity = records->capacity, first_header = headers->filled;
  int is_append_time = entry->attributes & LOG_APPEND_TIME;
  *wrong = entry->section_start;
  if (count < 0 || count > (stop - at) / LEAST_RECORD) {
    return DAMAGED;
  }
  if (count > capacity - records->filled) {
    return FULL;
  }
  int64_t *row = records->columns + records->filled;
  for (int64_t n = 0; n < count; n++, row++) {
    uint64_t size, time, offset, header_count;
    const uint8_t *next = varint(at, stop, 5, &size);
    *wrong = at - data;
    if (!next || size & 1 || (uint32_t)size >> 1 > (uint64_t)(stop - next)) {
      return DAMAGED;
    }
    const uint8_t *end = next + ((uint32_t)size >> 1);
    if (next == end || !(next = varint(next + 1, end, 10, &time)) || !(next = varint(next, end, 5, &offset)) ||
        !(next = sized(next, end, data, row + KEY * capacity, row + KEY_SIZE * capacity)) ||
        !(next = sized(next, end, data, row + VALUE * capacity, row + VALUE_SIZE * capacity)) ||
        !(next = varint(next, end, 5, &header_count))) {
      return DAMAGED;
    }
    row[ENTRY * capacity] = number;
    if (!adds(entry->base_offset, zigzag((uint32_t)offset), row + OFFSET * capacity)) {
      return TOO_WIDE;
    }
    if (is_append_time) {
      row[TIMESTAMP * capacity] = entry->max_timestamp;
    } else if (!adds(entry->base_timestamp, zigzag(time), row + TIMESTAMP * capacity)) {
      return TOO_WIDE;
    }
    header_count = (uint32_t)header_count;
    row[FIRST_HEADER * capacity] = headers->filled;
    row[HEADERS * capacity] = (int64_t)(header_count >> 1);
    if (header_count) {
      if (header_count & 1 || header_count > (uint64_t)(end - next)) {
        return DAMAGED;
      }
      if ((int64_t)(header_count >> 1) > most_headers - (headers->filled - first_header)) {
        return REFUSED;
      }
      int code = read_headers(&next, end, data, (int64_t)(header_count >> 1), headers);
      if (code) {
        *wrong = next - data;
        return code;
      }
    }
    if (next != end) {
      *wrong = next - data;
      return DAMAGED;
    }
    at = end;
  }
  *wrong = at - data;
  if (at != stop) {
    return DAMAGED;
  }
  records->filled += count;
  return NONE;
}

/* Reads the records of the entries from `first` to before `end` into tables that have filled[0] records and filled[1]
 * headers, which it adds to. An entry that has an error is passed over. Returns the number of the next entry: less than
 * `end` if there is no room for it. No batch may have more than `most_headers`. */
int64_t kernel_read_records(const uint8_t *data, int64_t size, KernelEntry *entries, int64_t first, int64_t end,
                            int64_t most_headers, int64_t *record_columns, int64_t record_capacity,
                            int64_t *header_columns, int64_t header_capacity, int64_t *filled) {
  Table records = {record_columns, record_capacity, filled[0]}, headers = {header_columns, header_capacity, filled[1]};
  int64_t n = first;
  for (; n < end; n++) {
    KernelEntry *entry = &entries[n];
    int64_t first_record = records.filled, first_header = headers.filled, wrong = entry->start;
    if (entry->error) {
      continue;
    }
    int code = NOT_A_BATCH;
    if (entry->kind == ENTRY_BATCH && entry->section_start >= 0 && entry->section_start <= entry->section_end &&
        entry->section_end <= size) {
      code = read_batch(data, entry, n, most_headers, &records, &headers, &wrong);
    }
    if (code) {
      headers.filled = first_header;
      if (code == FULL) {
        break;
      }
      entry->error = code;
      entry->error_at = wrong;
    }
    entry->first_record = first_record;
    entry->records = records.filled - first_record;
    entry->first_header = first_header;
    entry->headers = headers.filled - first_header;
  }
  filled[0] = records.filled;
  filled[1] = headers.filled;
  return n;
}

/* Copies data[starts[n], starts[n] + sizes[n]) one behind the other to `out`, where each begins at offsets[n]; a
 * negative size is null and adds nothing. Returns the size of all, or -1 if a part is outside the data or there is no
 * room for it. */
int64_t kernel_gather(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *sizes, int64_t count,
                      int32_t *offsets, uint8_t *out, int64_t capacity) {
  int64_t filled = 0;
  for (int64_t n = 0; n < count; n++) {
    int64_t part = sizes[n];
    offsets[n] = (int32_t)filled;
    if (part > 0) {
      if (starts[n] < 0 || part > size || starts[n] > size - part || part > capacity - filled ||
          part > INT32_MAX - filled) {
        return -1;
      }
      memcpy(out + filled, data + starts[n], (size_t)part);
      filled += part;
    }
  }
  offsets[count] = (int32_t)filled;
  return filled;
}
