/* Writes messages as JSON, as `exchange/to_json.py` does one at a time: {"time_ns":…,"size":…,"header":
 * {…},"body":{…}}. Both follow the same plan; here it is a program with the names of fields (`json_program.py`).
 *
 * A message is written as a whole or not at all. One that needs the careful way has the code CAREFUL: its bytes don't fit
 * the layout, or it has what is rare (text that is not ASCII, numbers with a fraction, unknown tags, records of internal
 * topics, damaged batches). Where only the contents of a field are rare, or its records, a hole is left for what Python
 * makes of it (`leave_hole`).
 *
 * Why no byte outside a frame is read: as in shred.c, `at` and `end` are offsets in the frame, 0 <= at <= end <= size
 * holds at each operation, and each advance of n follows a check of n <= end - at. A decompressed section comes with its
 * size. What follows records is in json_records.c. Why nothing outside the output is written: each value is written
 * behind a check of its largest size against the room that is left (`room`); where there is none, the row is reported,
 * and begins again with more room. Time is bounded as in shred.c; a level of nesting is checked against DEPTH. */
#include "json.h"
#include "varint.h"

enum { OPERATION };
enum { FLAGS, MARK };
enum { SCALAR };
enum { LENGTH };
enum { PROGRAM, DEPTH = 40, ID_SIZE = 16 };
enum { SMALL = 1 << 20 }; /* bytes of a frame that holds fewer records and headers than any limit, if none are compressed */

typedef struct {
  int64_t left; /* elements of an array, or tagged fields */
  int64_t end;  /* of what surrounds a tagged field */
  uint64_t seen;
  int32_t operation;
} Level;

static int write_uuid(JsonOut *out, const uint8_t *id) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  if (!room(out, 24)) return FULL;
  uint8_t *to = out->data + out->at;
  *to++ = '"';
  for (int n = 0; n < 15; n += 3) {
    uint32_t three = (uint32_t)id[n] << 16 | (uint32_t)id[n + 1] << 8 | id[n + 2];
    for (int bits = 18; bits >= 0; bits -= 6) *to++ = (uint8_t)digits[three >> bits & 63];
  }
  *to++ = (uint8_t)digits[id[15] >> 2];
  *to++ = (uint8_t)digits[(id[15] & 3) << 4];
  *to++ = '"';
  out->at += 24;
  return WRITTEN;
}

/* A number of eight bytes with a fraction: only those that are small and whole. */
static int write_float(JsonOut *out, uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  if (!(value >= 0 && value < 1e15) || bits >> 63 || value != (double)(int64_t)value) return CAREFUL;
  int code = write_int(out, (int64_t)value);
  return code ? code : write_text(out, ".0", 2);
}

/* The number of a topic id among those that have a name, or -1. */
static int64_t find_topic(const KernelJson *call, const uint8_t *id) {
  int64_t low = 0, high = call->topics;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = memcmp(call->topic_ids + middle * ID_SIZE, id, ID_SIZE);
    if (!order) return middle;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return -1;
}

/* What may be the name of the metadata log after damage, but not its name (`secrets.is_metadata_log`). */
static int is_damaged_log_name(const uint8_t *name, int64_t size) {
  static const char log[] = "__cluster_metadata";
  int64_t length = (int64_t)sizeof log - 1, same = 0;
  for (int64_t n = 0; n < size && n < length; n++) same += name[n] == (uint8_t)log[n];
  return same >= 12 && (same < length || size > length);
}

/* What may be the id of the metadata log, or what damage made of it. */
static int is_like_log_id(const uint8_t *id) {
  int zeros = 0;
  for (int n = 0; n < ID_SIZE; n++) zeros += !id[n];
  return zeros >= 12 && zeros < ID_SIZE;
}

static int is_log_id(const uint8_t *id) {
  static const uint8_t log[ID_SIZE] = {[ID_SIZE - 1] = 1};
  return !memcmp(id, log, ID_SIZE);
}

/* Looks at a number that is marked. Returns whether the message can be written. */
static int report_number(KernelJsonReport *report, const uint8_t *data, const int32_t *op) {
  int64_t value = op[4] == 2 ? be_int16(data) : op[4] == 4 ? be_int32(data) : be_int64(data);
  if (op[1] & REPORTED) report->reported = value;
  if (!(op[1] & ERROR_CODE) || !value) return 1;
  if (report->errors && report->error != value) return 0;
  report->error = value;
  report->errors++;
  return 1;
}

static int write_fixed(JsonOut *out, const KernelJson *call, const uint8_t *data, const int32_t *op,
                       KernelJsonReport *report, int *is_internal) {
  if (op[3] == UUID) {
    int code = write_uuid(out, data);
    if (code || !(op[1] & TOPIC_ID)) return code;
    if (is_like_log_id(data) && !is_log_id(data)) report->has_damaged_log = 1;
    int64_t topic = find_topic(call, data);
    if (topic < 0) {
      *is_internal = is_like_log_id(data);
      return WRITTEN;
    }
    *is_internal = call->topic_is_internal[topic];
    int64_t start = call->topic_starts[topic];
    return write_text(out, call->topic_texts + start, call->topic_starts[topic + 1] - start);
  }
  switch (op[3]) {
    case BOOL: return data[0] ? write_text(out, "true", 4) : write_text(out, "false", 5);
    case INT8: return write_int(out, (int64_t)data[0] - (data[0] >> 7 ? 256 : 0));
    case INT16: return write_int(out, be_int16(data));
    case UINT16: return write_int(out, (int64_t)data[0] << 8 | data[1]);
    case INT32: return write_int(out, be_int32(data));
    case UINT32: return write_int(out, be_uint32(data));
    case FLOAT64: return write_float(out, be_uint64(data));
    default: return write_int(out, be_int64(data));
  }
}

/* The fields of a message that say what others hold, by name. */
typedef struct {
  const uint8_t *data[SCOPE_NAMES];
  int64_t sizes[SCOPE_NAMES];
} Scope;

static inline void keep_name(Scope *scope, const int32_t *op, const uint8_t *data, int64_t size) {
  if (!op[5]) return;
  scope->data[op[5] - 1] = data;
  scope->sizes[op[5] - 1] = size;
}

/* Leaves a place for what a field holds. */
static int leave_hole(KernelJson *call, int64_t row, const JsonOut *out, const int32_t *op, const uint8_t *data,
                      int64_t size, const Scope *scope) {
  if (call->hole_count >= call->hole_capacity) return FULL;
  KernelJsonHole *hole = &call->holes[call->hole_count++];
  hole->row = row;
  hole->at = out->at;
  hole->column = op[2];
  hole->address = (int64_t)(uintptr_t)data;
  hole->size = size;
  for (int n = 0; n < SCOPE_NAMES; n++) {
    hole->names[n] = (int64_t)(uintptr_t)scope->data[n];
    hole->name_sizes[n] = scope->sizes[n];
  }
  return WRITTEN;
}

/* Writes a `records` field, or leaves a place for it where it is for Python, if it is all that the message has, or the
 * budget of the message does not matter. Of packed fields Python writes those of internal topics, which stay decoded. Of
 * a message with heads alone, which all topics have alike, Python writes all or nothing. */
static int write_records_field(KernelJson *call, int64_t row, JsonOut *out, const int32_t *op, const uint8_t *data,
                               int64_t size, const Scope *scope, int is_internal, JsonRecords *records) {
  KernelJsonReport *report = &call->reports[row];
  int64_t start = out->at;
  if (size) report->records_fields++;
  int code = call->records_form == RECORDS_HEADS    ? write_heads(out, data, size, records)
             : is_internal && size                  ? CAREFUL
             : call->records_form == RECORDS_PACKED ? write_packed_records(out, data, size, records)
                                                    : write_records(out, data, size, records);
  if (code != CAREFUL || call->sizes[row] > SMALL || call->records_form == RECORDS_HEADS) return code;
  if (call->records_form == RECORDS_PACKED && !is_internal) return code;
  out->at = start;
  return leave_hole(call, row, out, op, data, size, scope);
}

#define WRITE(call_)                     \
  do {                                   \
    code = (call_);                      \
    if (code) goto stopped;              \
  } while (0)
#define REFUSE_UNLESS(good)   \
  do {                        \
    if (!(good)) {            \
      code = CAREFUL;         \
      goto stopped;           \
    }                         \
  } while (0)

/* Writes one message. Returns WRITTEN, or why it is not written. */
static int write_message(KernelJson *call, int64_t row, JsonOut *out) {
  const int32_t *program = (const int32_t *)(uintptr_t)call->programs[2 * row], *op = program;
  const uint8_t *literals = (const uint8_t *)(uintptr_t)call->programs[2 * row + 1];
  const uint8_t *data = (const uint8_t *)(uintptr_t)call->frames[row];
  int64_t at = call->begin, end = call->sizes[row];
  JsonRecords records = {.packed = call->most_packed, .left = call->most_records, .sections = call->sections,
                         .section_sizes = call->section_sizes, .scratch = call->scratch,
                         .scratch_size = call->scratch_size, .plain_left = call->most_plain,
                         .packed_ratio = call->packed_ratio, .secrets = call->secrets};
  if (call->sections) {
    records.section = call->first_section[row];
    records.section_end = call->first_section[row + 1];
  }
  Level levels[DEPTH];
  Scope scope;
  for (int n = 0; n < SCOPE_NAMES; n++) scope.data[n] = NULL, scope.sizes[n] = -1;
  int depth = 0, code = WRITTEN, is_internal = 0;
  KernelJsonReport *report = &call->reports[row];
  *report = (KernelJsonReport){0};
  REFUSE_UNLESS(at <= end);
  WRITE(write_text(out, "{\"time_ns\":", 11));
  WRITE(write_int(out, call->times[row]));
  WRITE(write_text(out, ",\"size\":", 8));
  WRITE(write_int(out, end));
  for (;;) {
    switch (op[0]) {
      case LITERAL:
        WRITE(write_text(out, literals + op[3], op[4]));
        op += WIDTH;
        break;
      case FIXED: {
        REFUSE_UNLESS(op[4] <= end - at);
        if (op[1] & (REPORTED | ERROR_CODE)) REFUSE_UNLESS(report_number(report, data + at, op));
        WRITE(write_fixed(out, call, data + at, op, report, &is_internal));
        keep_name(&scope, op, data + at, op[4]);
        at += op[4];
        op += WIDTH;
        break;
      }
      case VARIABLE: {
        int64_t size;
        if (op[1] & COMPACT) {
          uint32_t more;
          REFUSE_UNLESS(uvarint(data, &at, end, &more));
          size = (int64_t)more - 1;
        } else {
          int64_t width = op[3] == STRING ? 2 : 4;
          REFUSE_UNLESS(width <= end - at);
          size = width == 2 ? be_int16(data + at) : be_int32(data + at);
          at += width;
        }
        if (size < 0) {
          REFUSE_UNLESS(op[1] & NULLABLE);
          WRITE(write_text(out, "null", 4));
          keep_name(&scope, op, NULL, -1);
        } else {
          REFUSE_UNLESS(size <= end - at);
          if (op[3] == STRING) {
            WRITE(write_string(out, data + at, size));
            keep_name(&scope, op, data + at, size);
            if (op[1] & TOPIC_NAME) {
              is_internal = size > 1 && data[at] == '_' && data[at + 1] == '_';
              if (is_damaged_log_name(data + at, size)) report->has_damaged_log = 1;
            }
          } else if (op[3] == BYTES) {
            WRITE(write_hex(out, data + at, size));
            if (op[1] & OPENED && size) WRITE(leave_hole(call, row, out, op, data + at, size, &scope));
          } else {
            WRITE(write_records_field(call, row, out, op, data + at, size, &scope, is_internal, &records));
          }
          at += size;
        }
        op += WIDTH;
        break;
      }
      case ARRAY: {
        int64_t count;
        if (op[1] & COMPACT) {
          uint32_t more;
          REFUSE_UNLESS(uvarint(data, &at, end, &more));
          count = (int64_t)more - 1;
        } else {
          REFUSE_UNLESS(4 <= end - at);
          count = be_int32(data + at);
          at += 4;
        }
        if (count <= 0) {
          REFUSE_UNLESS(count == 0 || op[1] & NULLABLE);
          WRITE(count ? write_text(out, "null", 4) : write_text(out, "[]", 2));
          op = program + op[3] * WIDTH;
          break;
        }
        REFUSE_UNLESS(count * op[4] <= end - at && depth < DEPTH);
        WRITE(write_text(out, "[", 1));
        op += WIDTH;
        levels[depth++] = (Level){count, end, 0, (int32_t)((op - program) / WIDTH)};
        break;
      }
      case NEXT:
        if (--levels[depth - 1].left > 0) {
          WRITE(write_text(out, ",", 1));
          op = program + levels[depth - 1].operation * WIDTH;
        } else {
          WRITE(write_text(out, "]", 1));
          depth--;
          op += WIDTH;
        }
        break;
      case STRUCT:
      case TAGGED_STRUCT: {
        int there;
        if (op[0] == STRUCT) {
          REFUSE_UNLESS(1 <= end - at);
          there = data[at++] < 0x80;
        } else {
          uint32_t number;
          REFUSE_UNLESS(uvarint(data, &at, end, &number));
          there = number != 0;
        }
        if (!there) WRITE(write_text(out, "null", 4));
        op = there ? op + WIDTH : program + op[3] * WIDTH;
        break;
      }
      case TAGS: {
        uint32_t count;
        REFUSE_UNLESS(uvarint(data, &at, end, &count));
        if (!count) {
          op = program + op[4] * WIDTH;
          break;
        }
        REFUSE_UNLESS(depth < DEPTH);
        levels[depth++] = (Level){count, end, 0, (int32_t)((op - program) / WIDTH)};
        goto next_tag;
      }
      case TAG_END:
        REFUSE_UNLESS(at == end);
        end = levels[depth - 1].end;
        goto next_tag;
      next_tag: {
        Level *level = &levels[depth - 1];
        const int32_t *tags = program + level->operation * WIDTH;
        if (level->left == 0) {
          depth--;
          op = program + tags[4] * WIDTH;
          break;
        }
        level->left--;
        uint32_t number, size;
        REFUSE_UNLESS(uvarint(data, &at, end, &number) && uvarint(data, &at, end, &size) && size <= end - at);
        int32_t found = 0;
        while (found < tags[3] && (uint32_t)tags[(found + 1) * WIDTH + 3] != number) found++;
        REFUSE_UNLESS(found < tags[3] && found < 64 && !(level->seen >> found & 1));
        level->seen |= (uint64_t)1 << found;
        end = at + size;
        if (out->data[out->at - 1] != '{') WRITE(write_text(out, ",", 1)); /* a message is never empty */
        op = program + tags[(found + 1) * WIDTH + 4] * WIDTH;
        break;
      }
      default: /* END */
        REFUSE_UNLESS(at == end);
        report->has_compressed = records.is_compressed;
        call->expanded += records.expanded;
        report->names_topics = scope.sizes[SCOPE_TOPIC] >= 0 || scope.sizes[SCOPE_TOPIC_ID] >= 0;
        return WRITTEN;
    }
  }
stopped:
  return code;
}

/* Writes messages one behind the other, with where each ends, until one finds no room. Returns how many it did. */
KERNEL_API int64_t kernel_json(KernelJson *call) {
  JsonOut out = {call->out, 0, call->capacity};
  int64_t row = 0;
  for (; row < call->rows; row++) {
    int64_t start = out.at, holes = call->hole_count;
    int code = write_message(call, row, &out);
    if (code) call->hole_count = holes;
    if (code == FULL) break;
    if (code) out.at = start;
    call->codes[row] = (uint8_t)code;
    call->ends[row] = out.at;
  }
  return row;
}

/* Copies the bytes at some addresses to `out`, which has room for all of them, one behind the other. Returns how many
 * bytes they are. */
KERNEL_API int64_t kernel_join(const uint64_t *parts, const int64_t *sizes, int64_t count, uint8_t *out) {
  int64_t at = 0;
  for (int64_t n = 0; n < count; n++) {
    if (sizes[n] <= 0) continue;
    memcpy(out + at, (const uint8_t *)(uintptr_t)parts[n], (size_t)sizes[n]);
    at += sizes[n];
  }
  return at;
}
