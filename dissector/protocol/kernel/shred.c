/* Reads many frames of one layout into columns: a value and a position for each leaf that is wanted, or a key of them.
 *
 * A layout comes as a program (`codec/program.py`): rows of six numbers, an operation and its operands. The interpreter
 * follows it through each frame. A frame that does not fit adds nothing to any column; its error code is set.
 *
 * Why no byte outside a frame can be read. A frame is the memory [frame, frame + size). `at` and `end` are offsets in it,
 * and 0 <= at <= end <= size holds at each operation: `end` begins as size and only ever becomes at + n where n <= end -
 * at was checked, or again what it was; `at` grows by n only where n <= end - at was checked (`uvarint` checks each of
 * its bytes). All sizes are of 64 bits and below 2^33, so no sum overflows. Each turn of the loop reads a byte, or
 * advances in the program, or counts down a level; an element takes at least one byte, as counts are checked against
 * the bytes that are left, so time is bounded by size times the length of the program.
 *
 * Of a frame in pieces (`Pieces`), what is read is copied to its place before: each read of the n bytes at `at` follows a
 * call of `fetch` for them. Of bytes and records the content is copied only as far as a reader of columns looks at it:
 * the header of a first batch. A piece is copied as far as it fits in [frame, frame + size).
 *
 * Why nothing outside the columns is written. Columns of which values are kept have `capacity` of them each, one column
 * behind the other, and the caller has room for so many. Each write is preceded by a check against the capacity of its
 * column or of the keys; where one is full the row is taken back and reported, and the caller makes room.
 */
#include <string.h>

#include "clean.h"
#include "kernel.h"
#include "record_entries.h"
#include "varint.h"

enum { OPERATION };
enum { FLAGS };
enum { WANT };
enum { SCALAR };
enum { LENGTH };
enum { LONGEST_NUMBER = 5 /* bytes of a size or a count */ };
enum { PROGRAM, DEPTH = 40, MOST_TAGS = 64 /* bits of `seen` */ };
enum { SHRED_ERROR };

typedef enum { OF_ARRAY, OF_TAGS } LevelKind;

typedef struct {
  int64_t left; /* elements of an array, or tagged fields */
  int64_t end;  /* of what surrounds a tagged field */
  int64_t unknown;
  uint64_t seen; /* which of the known tags were there */
  int32_t operation;
  LevelKind kind;
} Level;

typedef struct {
  KernelShred *out;
  int64_t row;
  int64_t key_at;
  uint8_t unclean; /* whether a field of the row that is to be checked is not what it should be */
} Sink;

/* What was not looked at yet of a frame in pieces. */
typedef struct {
  uint8_t *data;
  int64_t size;
  int64_t there; /* offset at which the next piece begins: what is wanted before it is in its place */
  int64_t next, stop;
} Pieces;

static Pieces pieces_of(const KernelShred *out, int64_t row) {
  int64_t size = out->sizes[row];
  Pieces found = {(uint8_t *)(uintptr_t)out->frames[row], size, size, 0, 0};
  if (out->first_piece && out->first_piece[row] < out->stop_piece[row]) {
    found.there = 0;
    found.next = out->first_piece[row];
    found.stop = out->stop_piece[row];
  }
  return found;
}

/* Copies the pieces that have some of the `size` bytes at `at`, which never goes back. Those in front are left out. */
static void copy_pieces(const KernelShred *out, Pieces *pieces, int64_t at, int64_t size) {
  for (; pieces->there < at + size && pieces->next < pieces->stop; pieces->next++) {
    int64_t room = pieces->size - pieces->there, width = out->piece_sizes[pieces->next];
    if (width > room) width = room;
    if (pieces->there + width > at) {
      memcpy(pieces->data + pieces->there, (const uint8_t *)(uintptr_t)out->pieces[pieces->next], (size_t)width);
    }
    pieces->there += width;
  }
}

static inline void fetch(const KernelShred *out, Pieces *pieces, int64_t at, int64_t size) {
  if (size > pieces->there - at) copy_pieces(out, pieces, at, size);
}

static inline uint64_t big_endian(const uint8_t *data, int size) {
  uint64_t value = 0;
  for (int n = 0; n < size; n++) value = value << 8 | data[n];
  return value;
}

/* A fixed-width value. `kind` is the place of the type in `plan.SCALARS`; a uuid has no number, and a float its bits. */
static inline int64_t scalar(const uint8_t *data, int32_t kind) {
  switch (kind) {
    case 0: return data[0] != 0;
    case 1: return (int8_t)data[0];
    case 2: return (int16_t)big_endian(data, 2);
    case 3: return (int64_t)big_endian(data, 2);
    case 4: return (int32_t)big_endian(data, 4);
    case 5: return (int64_t)big_endian(data, 4);
    case 8: return 0;
    default: return (int64_t)big_endian(data, 8);
  }
}

static inline int add_key(Sink *sink, const void *data, int64_t size) {
  if (size > sink->out->key_capacity - sink->key_at) return 0;
  memcpy(sink->out->keys + sink->key_at, data, (size_t)size);
  sink->key_at += size;
  return 1;
}

/* Adds the outlines of `count` numbers to the key: of one that is negative all of its bytes, of any other a zero. */
static int add_number_outlines(Sink *sink, const uint8_t *data, int64_t count, int64_t size) {
  static const uint8_t not_negative = 0;
  for (const uint8_t *end = data + count * size; data < end; data += size) {
    int is_added = data[0] >> 7 ? add_key(sink, data, size) : add_key(sink, &not_negative, 1);
    if (!is_added) return 0;
  }
  return 1;
}

/* Adds the outline of a `records` field to the key: what each entry is, and its attributes; of a batch the id of its
 * producer, too. `entry_at` has found all bytes of a batch's header, and those of the attributes of a message. */
static int add_records_outline(Sink *sink, const uint8_t *data, int64_t size) {
  enum { END_OF_FIELD = 255 };
  uint8_t outline[2 + 2 + 8], last = END_OF_FIELD;
  for (int64_t at = 0, next; at < size; at = next) {
    int kind = entry_at(data, at, size, &next);
    outline[0] = (uint8_t)kind;
    int is_message = kind == ENTRY_MESSAGE;
    outline[1] = kind == ENTRY_BATCH || is_message ? data[at + MAGIC_AT] : 0;
    if (is_message) outline[2] = data[at + MAGIC_AT + 1];
    if (kind == ENTRY_BATCH) {
      memcpy(outline + 2, data + at + ATTRIBUTES_AT, 2);
      memcpy(outline + 4, data + at + PRODUCER_ID_AT, 8);
    }
    if (!add_key(sink, outline, kind == ENTRY_BATCH ? (int64_t)sizeof outline : 2 + is_message)) return 0;
  }
  return add_key(sink, &last, 1);
}

/* Adds a value to its column. The caller adds what belongs to the key. Returns 0 where the column is full. */
static inline int add(Sink *sink, int32_t column, int64_t value, int64_t position) {
  KernelShred *out = sink->out;
  uint8_t wanted = out->wanted[column];
  if (!(wanted & (VALUES | NONZERO)) || ((wanted & NONZERO) && !value)) return 1;
  if (out->counts[column] >= out->capacity) return 0;
  int64_t at = out->base[column] + out->counts[column]++;
  out->values[at] = value;
  out->positions[at] = position;
  out->in_row[at] = (int32_t)sink->row;
  return 1;
}

/* Looks at some values of eight bytes that stand one behind the other. */
static inline void check_times(Sink *sink, const uint8_t *data, int64_t count) {
  for (int64_t n = 0; n < count; n++) sink->unclean |= !is_time((int64_t)big_endian(data + 8 * n, 8));
}

/* The same for a length, a count or whether something is there, which are numbers in a key, too. */
static inline int add_number(Sink *sink, int32_t column, int64_t value, int64_t position) {
  if (sink->out->wanted[column] & KEY) {
    int32_t number = (int32_t)value;
    if (!add_key(sink, &number, sizeof number)) return 0;
  }
  return add(sink, column, value, position);
}

#define FAIL(code)      \
  do {                  \
    error = (code);     \
    goto failed;        \
  } while (0)
#define NEED(done)      \
  do {                  \
    if (!(done)) goto full; \
  } while (0)

KERNEL_API int64_t kernel_shred(KernelShred *out) {
  const int32_t *program = out->program;
  const uint8_t *wanted = out->wanted;
  Level levels[DEPTH];
  Sink sink = {out, 0, 0, 0};
  for (int64_t column = 0, kept = 0; column < out->columns; column++) {
    out->base[column] = kept * out->capacity;
    out->counts[column] = 0;
    kept += (wanted[column] & (VALUES | NONZERO)) != 0;
  }
  for (; sink.row < out->rows; sink.row++) {
    const uint8_t *data = (const uint8_t *)(uintptr_t)out->frames[sink.row];
    int64_t at = out->begin, end = out->sizes[sink.row], key_start = sink.key_at;
    Pieces pieces = pieces_of(out, sink.row);
    const int32_t *op = program;
    int depth = 0, error = NONE;
    sink.unclean = 0;
    memcpy(out->saved, out->counts, sizeof(int64_t) * (size_t)out->columns);
    if (at > end) FAIL(ENDS_INSIDE);
    for (;;) {
      switch (op[0]) {
        case FIXED: {
          int64_t size = op[4];
          if (size > end - at) FAIL(ENDS_INSIDE);
          if (wanted[op[2]]) {
            fetch(out, &pieces, at, size);
            if (wanted[op[2]] & KEY) NEED(add_key(&sink, data + at, size));
            if (wanted[op[2]] & OUTLINE) NEED(add_number_outlines(&sink, data + at, 1, size));
            if (wanted[op[2]] & CHECKED && op[3] == INT64) check_times(&sink, data + at, 1);
            NEED(add(&sink, op[2], scalar(data + at, op[3]), at));
          }
          at += size;
          op += WIDTH;
          break;
        }
        case VARIABLE: {
          int64_t size, start = at;
          fetch(out, &pieces, at, LONGEST_NUMBER);
          if (op[1] & COMPACT) {
            uint32_t more;
            if (!uvarint(data, &at, end, &more)) FAIL(BAD_VARINT);
            size = (int64_t)more - 1;
          } else {
            int64_t width = op[3] == 0 ? 2 : 4;
            if (width > end - at) FAIL(ENDS_INSIDE);
            size = width == 2 ? (int16_t)big_endian(data + at, 2) : (int32_t)big_endian(data + at, 4);
            at += width;
          }
          if (size < 0) {
            size = -1;
            if (!(op[1] & NULLABLE)) { at = start; FAIL(IS_NULL); }
          } else if (size > end - at) { at = start; FAIL(PAST_THE_END); }
          if (wanted[op[2]]) {
            int is_text = op[3] == STRING || wanted[op[2]] & (KEY | OUTLINE);
            fetch(out, &pieces, at, is_text || size < BATCH_HEADER ? size : BATCH_HEADER);
            NEED(add_number(&sink, op[2], size, at));
            if (size > 0 && (wanted[op[2]] & KEY)) NEED(add_key(&sink, data + at, size));
            if (wanted[op[2]] & OUTLINE && op[3] == RECORDS) NEED(add_records_outline(&sink, data + at, size));
            if (wanted[op[2]] & CHECKED && op[3] == STRING) sink.unclean |= !is_plain_text(data + at, size);
          }
          if (size > 0) at += size;
          op += WIDTH;
          break;
        }
        case ARRAY: {
          int64_t count, start = at;
          fetch(out, &pieces, at, LONGEST_NUMBER);
          if (op[1] & COMPACT) {
            uint32_t more;
            if (!uvarint(data, &at, end, &more)) FAIL(BAD_VARINT);
            count = (int64_t)more - 1;
          } else {
            if (4 > end - at) FAIL(ENDS_INSIDE);
            count = (int32_t)big_endian(data + at, 4);
            at += 4;
          }
          if (count < 0) {
            count = -1;
            if (!(op[1] & NULLABLE)) { at = start; FAIL(IS_NULL); }
          } else if (count * op[4] > end - at) { at = start; FAIL(PAST_THE_END); }
          if (wanted[op[2]]) NEED(add_number(&sink, op[2], count, start));
          const int32_t *element = op + WIDTH;
          if (count <= 0) {
            op = program + op[3] * WIDTH;
          } else if (element[0] == FIXED && element[WIDTH] == NEXT) { /* numbers: no level is needed */
            if (wanted[element[2]]) {
              fetch(out, &pieces, at, count * element[4]);
              if (wanted[element[2]] & KEY) NEED(add_key(&sink, data + at, count * element[4]));
              if (wanted[element[2]] & OUTLINE) NEED(add_number_outlines(&sink, data + at, count, element[4]));
              if (wanted[element[2]] & CHECKED && element[3] == INT64) check_times(&sink, data + at, count);
              for (int64_t n = 0; n < count; n++) {
                int64_t place = at + n * element[4];
                NEED(add(&sink, element[2], scalar(data + place, element[3]), place));
              }
            }
            at += count * element[4];
            op = program + op[3] * WIDTH;
          } else {
            if (depth == DEPTH) FAIL(TOO_DEEP);
            levels[depth++] = (Level){count, end, 0, 0, (int32_t)((op - program) / WIDTH + 1), OF_ARRAY};
            op += WIDTH;
          }
          break;
        }
        case NEXT:
          if (--levels[depth - 1].left > 0) {
            op = program + levels[depth - 1].operation * WIDTH;
          } else {
            depth--;
            op += WIDTH;
          }
          break;
        case STRUCT: {
          if (1 > end - at) FAIL(ENDS_INSIDE);
          fetch(out, &pieces, at, 1);
          int there = (int8_t)data[at] >= 0;
          NEED(add_number(&sink, op[2], there, at));
          at++;
          op = there ? op + WIDTH : program + op[3] * WIDTH;
          break;
        }
        case TAGGED_STRUCT: {
          uint32_t there;
          int64_t start = at;
          fetch(out, &pieces, at, LONGEST_NUMBER);
          if (!uvarint(data, &at, end, &there)) FAIL(BAD_VARINT);
          NEED(add_number(&sink, op[2], there != 0, start));
          op = there ? op + WIDTH : program + op[3] * WIDTH;
          break;
        }
        case TAGS: {
          uint32_t count;
          fetch(out, &pieces, at, LONGEST_NUMBER);
          if (!uvarint(data, &at, end, &count)) FAIL(BAD_VARINT);
          if (depth == DEPTH || op[3] > MOST_TAGS) FAIL(TOO_DEEP);
          if (!count && !op[3]) { /* as most structures end: no level is needed */
            NEED(add(&sink, op[2], 0, at));
            op = program + op[4] * WIDTH;
            break;
          }
          levels[depth++] = (Level){count, end, 0, 0, (int32_t)((op - program) / WIDTH), OF_TAGS};
          goto next_tag;
        }
        case TAG_END:
          if (at != end) FAIL(TAG_SIZE);
          end = levels[depth - 1].end;
          goto next_tag;
        next_tag: {
          Level *level = &levels[depth - 1];
          const int32_t *tags = program + level->operation * WIDTH;
          if (level->left == 0) {
            for (int32_t n = 0; n < tags[3]; n++) {
              int32_t column = tags[(n + 1) * WIDTH + 2];
              NEED(add(&sink, column, (int64_t)(level->seen >> n & 1), at));
              /* In a key, a field's number precedes its value, and this ends the fields of a structure. */
              if (wanted[column] & KEY) { int32_t last = -1; NEED(add_key(&sink, &last, sizeof last)); }
            }
            NEED(add(&sink, tags[2], level->unknown, at));
            sink.unclean |= wanted[tags[2]] & CHECKED && level->unknown;
            depth--;
            op = program + tags[4] * WIDTH;
            break;
          }
          level->left--;
          uint32_t number, size;
          fetch(out, &pieces, at, 2 * LONGEST_NUMBER);
          if (!uvarint(data, &at, end, &number) || !uvarint(data, &at, end, &size)) FAIL(BAD_VARINT);
          if (size > end - at) FAIL(PAST_THE_END);
          int32_t found = 0;
          while (found < tags[3] && (uint32_t)tags[(found + 1) * WIDTH + 3] != number) found++;
          if (found == tags[3]) {
            if (tags[1] & KNOWN_TAGS) FAIL(UNKNOWN_TAG);
            level->unknown++;
            at += size;
            goto next_tag;
          }
          if (level->seen >> found & 1) FAIL(REPEATED_TAG);
          level->seen |= (uint64_t)1 << found;
          const int32_t *tag = tags + (found + 1) * WIDTH;
          if (wanted[tag[2]] & KEY) NEED(add_key(&sink, &found, sizeof found));
          end = at + size;
          op = program + tag[4] * WIDTH;
          break;
        }
        default: /* END */
          if (at != end) FAIL(TRAILING);
          goto done;
      }
    }
  failed:
    memcpy(out->counts, out->saved, sizeof(int64_t) * (size_t)out->columns);
    sink.key_at = key_start;
    out->errors[sink.row] = (uint8_t)error;
    out->unclean[sink.row] = 0;
    out->error_at[sink.row] = at;
    out->key_ends[sink.row] = sink.key_at;
    continue;
  full:
    memcpy(out->counts, out->saved, sizeof(int64_t) * (size_t)out->columns);
    return sink.row;
  done:
    out->errors[sink.row] = NONE;
    out->unclean[sink.row] = sink.unclean;
    out->key_ends[sink.row] = sink.key_at;
  }
  return sink.row;
}

KERNEL_API int64_t kernel_fits(KernelShred *layouts, int64_t count) {
  for (int64_t n = 0; n < count; n++) kernel_shred(&layouts[n]);
  return count;
}
