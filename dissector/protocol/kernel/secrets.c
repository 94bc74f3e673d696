/* Says of many pieces of memory whether something in them may be a secret of a record: the name of one, the user and
 * password of a URL, a letter that JSON escapes though it need not, or the beginning of a record of the metadata log with
 * secrets. Most have nothing of that, and need no closer look (`secret_marks.py`).
 *
 * Each mark has a window of four bytes. Where it is, one of the first two places of the window is even, and three bytes
 * are there: only even places are looked at, by the lowest five bits of three bytes.
 *
 * Why no byte outside is read: three bytes are there at each place, and `is_mark` compares a mark only where all of it is
 * inside; the others compare places with `size` before they read. */
#include <string.h>

#include "secrets.h"

enum { FOLD = 0x20, LEAST_HEAD = 8, NEWER = 4, USER_SCRAM = 11, CONFIG = 4, MOST_LOOKED_AT = 1024 };

static inline int is_letter(uint8_t byte) {
  return (uint8_t)((byte | FOLD) - 'a') < 26;
}

static int is_mark(const uint8_t *data, int64_t size, int64_t at, const uint8_t *mark, int64_t length) {
  if (at < 0 || length > size - at) return 0;
  for (int64_t n = 0; n < length; n++) {
    uint8_t byte = is_letter(data[at + n]) ? data[at + n] | FOLD : data[at + n];
    if (mark[n] && mark[n] != byte) return 0;
  }
  return 1;
}

/* Whether one of the marks of a set is at a place, each as far in front of it as its window says, or a byte more. */
static int has_name(const uint8_t *data, int64_t size, int64_t at, int set, const KernelSecretMarks *marks) {
  for (int64_t n = marks->first[set]; n < marks->first[set + 1]; n++) {
    const KernelSecretMark *mark = &marks->members[n];
    int64_t end = at - mark->before + mark->length;
    if (is_mark(data, size, at - mark->before, marks->text + mark->start, mark->length) &&
        !(mark->ends && end < size && (is_letter(data[end]) || (data[end] >= '0' && data[end] <= '9'))))
      return 1;
  }
  return 0;
}

static inline int low_bits(const uint8_t *data) {
  return (data[0] & 31) | (data[1] & 31) << 5 | (data[2] & 31) << 10;
}

static int has_names(const uint8_t *data, int64_t size, const KernelSecretMarks *marks) {
  const uint8_t *sets = marks->sets;
  int64_t at = 0;
  for (; at + 8 <= size; at += 6) {
    uint64_t word = 0;
    for (int n = 0; n < 8; n++) word |= (uint64_t)data[at + n] << 8 * n; /* one load */
    uint64_t pairs = (word & 0x001F001F001F001F) | (word & 0x1F001F001F001F00) >> 3;
    uint64_t bits = pairs | (pairs >> 16 & 0x001F001F001F) << 10; /* as `low_bits`, in three parts of 16 bits */
    uint8_t one = sets[bits & 0x7FFF], two = sets[bits >> 16 & 0x7FFF], three = sets[bits >> 32 & 0x7FFF];
    if (!(one | two | three)) continue;
    if ((one && has_name(data, size, at, one, marks)) || (two && has_name(data, size, at + 2, two, marks)) ||
        (three && has_name(data, size, at + 4, three, marks)))
      return 1;
  }
  for (; at + 2 < size; at += 2) {
    int set = sets[low_bits(data + at)];
    if (set && has_name(data, size, at, set, marks)) return 1;
  }
  return 0;
}

/* `://user:password@`, and `:\/\/`, as some write it in JSON; `oracle:thin:user/password@`. The end of the bytes may be
 * in the password. Work grows with the bytes: the search from an `@` backwards ends at the one before. */
static int has_user(const uint8_t *data, int64_t size) {
  for (int64_t at = 0; at <= size; at++) {
    const uint8_t *found = at < size ? memchr(data + at, '@', (size_t)(size - at)) : NULL;
    at = found ? found - data : size;
    int is_parted = 0;
    for (int64_t n = at - 1; n >= 0 && data[n] > ' ' && data[n] != '"' && data[n] != '@'; n--) {
      if (data[n] == ':' && n + 2 < size && (data[n + 1] == '/' || data[n + 1] == '\\') && is_parted) return 1;
      if (data[n] == ':' && is_mark(data, size, n - 6, (const uint8_t *)"oracle", 6)) return 1;
      is_parted |= data[n] == ':';
    }
  }
  return 0;
}

/* `\u0070`: what is always written as it is. */
static int has_needless_escape(const uint8_t *data, int64_t size) {
  for (int64_t at = 0; at < size; at++) {
    const uint8_t *found = memchr(data + at, '\\', (size_t)(size - at));
    if (!found || size - (found - data) < 6) return 0;
    at = found - data;
    if (data[at + 1] != 'u' || data[at + 2] != '0' || data[at + 3] != '0') continue;
    int high = data[at + 4] - '0', low = data[at + 5];
    int digit = low <= '9' ? low - '0' : (low | FOLD) - 'a' + 10, code = high << 4 | digit;
    if (high >= 2 && high <= 7 && digit >= 0 && digit < 16 && (is_letter((uint8_t)code) || memchr(".-_:/@", code, 6)))
      return 1;
  }
  return 0;
}

/* A compact string that is not empty, and has no controls as far as it is looked at. */
static int is_text(const uint8_t *data, int64_t size, int64_t at) {
  if (at + 1 >= size || data[at] < 2) return 0;
  int64_t end = data[at] < 0x80 ? at + data[at] : at + 1 + (data[at] & 0x7F) + 128 * data[at + 1];
  if (end > size) return 0;
  if (end > at + MOST_LOOKED_AT) end = at + MOST_LOOKED_AT;
  at += data[at] >= 0x80;
  while (++at < end)
    if (data[at] < ' ') return 0;
  return 1;
}

/* The type of a resource with configs: powers of two, up to one that is not known yet. */
static inline int is_resource(uint8_t type) {
  return type && type <= 64 && !(type & (type - 1));
}

/* The frame's version, a record type, its version, and names: of `ConfigRecord` behind a number and the resource's name,
 * which may be empty. */
static int has_record(const uint8_t *data, int64_t size, uint8_t type) {
  for (int64_t at = 1; at < size - LEAST_HEAD; at++) {
    const uint8_t *found = memchr(data + at, type, (size_t)(size - LEAST_HEAD - at));
    if (!found) return 0;
    at = found - data;
    if (data[at - 1] > 1 || data[at + 1] >= NEWER) continue;
    if (type == USER_SCRAM ? is_text(data, size, at + 2)
                           : is_resource(data[at + 2]) && is_text(data, size, data[at + 3] == 1 ? at + 4 : at + 3))
      return 1;
  }
  return 0;
}

int may_hold_secret(const uint8_t *data, int64_t size, const KernelSecretMarks *marks) {
  return has_names(data, size, marks) || has_user(data, size) || has_needless_escape(data, size) || has_record(data, size, CONFIG) ||
         has_record(data, size, USER_SCRAM);
}

/* Says so of each piece. Returns `count`. */
KERNEL_API int64_t kernel_may_hold_secrets(const uint64_t *pieces, const int64_t *sizes, int64_t count,
                                           const KernelSecretMarks *marks, uint8_t *found) {
  for (int64_t n = 0; n < count; n++)
    found[n] = (uint8_t)(sizes[n] > 0 && may_hold_secret((const uint8_t *)(uintptr_t)pieces[n], sizes[n], marks));
  return count;
}
