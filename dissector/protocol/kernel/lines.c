/* Writes rows of exchanges as lines of text, in the columns of `show` (`cli/render/lines.py`).
 *
 * Nothing outside of the buffers is read or written: a text is written only if its number is one of those that there are
 * and its place is inside of them, and a line is begun only where there is room for its texts and for `MOST_FIXED` bytes,
 * which is more than all that is written besides: nine numbers of at most 20 digits, a point and six digits, units, signs
 * and the spaces of the columns, which are narrower than any of these bounds. */
#include <stdio.h>
#include <string.h>

#include "decimal.h"
#include "kernel.h"

enum { MOST_FIXED = 320 };

/* Puts spaces in front of what stands at `out`, so that it is `width` wide, and one behind it; returns where that ends. */
static uint8_t *aligned(uint8_t *out, int64_t size, int64_t width) {
  int64_t spaces = size < width ? width - size : 0;
  memmove(out + spaces, out, (size_t)size);
  memset(out, ' ', (size_t)spaces);
  out[spaces + size] = ' ';
  return out + spaces + size + 1;
}

/* `value` in units, of which `scale` are 1 of what is shown with `places` decimals. It is rounded as the nearest double of
 * the quotient is: what lies between two results is rounded by printf, of whose text only the last digit is taken, as its
 * point depends on the locale. */
static uint64_t rounded(uint64_t value, uint64_t unit, double scale, int places) {
  uint64_t whole = value / unit, rest = value % unit;
  if (2 * rest != unit) return whole + (2 * rest > unit);
  char text[64];
  int size = snprintf(text, sizeof text, "%.*f", places, (double)value / scale);
  return whole + (text[size - 1] != (char)('0' + whole % 10));
}

static int64_t unit_of(uint8_t *out, const char *unit) {
  int64_t size = (int64_t)strlen(unit);
  memcpy(out, unit, (size_t)size);
  return size;
}

static int64_t decimal(uint8_t *out, uint64_t value, uint64_t one, int places) {
  int64_t size = digits(out, value / one, 1);
  out[size++] = '.';
  return size + digits(out + size, value % one, places);
}

/* `core.text.duration` of nanoseconds. */
static int64_t duration(uint8_t *out, int64_t value, int *is_micro) {
  uint64_t ns = magnitude(value);
  int64_t size = 0;
  if (value < 0) out[size++] = '-';
  *is_micro = ns < 1000000;
  if (*is_micro) {
    size += digits(out + size, ns / 1000, 1);
    return size + unit_of(out + size, " \xC2\xB5s");
  }
  if (ns < 1000000000) {
    size += decimal(out + size, rounded(ns, 100000, 1e6, 1), 10, 1);
    return size + unit_of(out + size, " ms");
  }
  size += decimal(out + size, rounded(ns, 1000000, 1e9, 3), 1000, 3);
  return size + unit_of(out + size, " s");
}

/* `core.text.size` of a count of bytes; a hyphen for none. */
static int64_t byte_size(uint8_t *out, int64_t count) {
  static const char units[] = "kMG";
  if (count < 0) return unit_of(out, "-");
  uint64_t bytes = (uint64_t)count, scale = 1000;
  if (bytes < 1000) return digits(out, bytes, 1);
  int64_t unit = 0, size;
  while (unit < 2 && bytes >= scale * 1000) scale *= 1000, unit++;
  if (bytes < scale * 10)
    size = decimal(out, rounded(bytes, scale / 10, (double)scale, 1), 10, 1);
  else
    size = digits(out, bytes / scale, 1);
  out[size] = (uint8_t)units[unit];
  return size + 1;
}

/* `core.text.seconds` of nanoseconds. */
static int64_t seconds(uint8_t *out, int64_t value) {
  uint64_t ns = magnitude(value);
  if (value < 0) *out = '-';
  int64_t size = value < 0;
  return size + decimal(out + size, ns / 1000, 1000000, 6);
}

/* The columns of a row in front of its text, which is that of the last column. */
static uint8_t *columns(const KernelLines *call, int64_t row, uint8_t *out) {
  out = aligned(out, signed_digits(out, call->numbers[row]), 6);
  out = aligned(out, seconds(out, call->times[row]), 12);
  *out = 'C';
  out = aligned(out, 1 + signed_digits(out + 1, call->connections[row]), 5);
  int64_t api = call->apis[row], size = call->starts[api + 1] - call->starts[api];
  memcpy(out, call->texts + call->starts[api], (size_t)size);
  out += size;
  *out++ = ' ';
  out = aligned(out, signed_digits(out, call->versions[row]), 3);
  out = aligned(out, signed_digits(out, call->ids[row]), 7);
  out = aligned(out, byte_size(out, call->request_sizes[row]), 7);
  out = aligned(out, byte_size(out, call->response_sizes[row]), 7);
  int is_micro = 0;
  size = call->latencies[row] == INT64_MIN ? 0 : duration(out, call->latencies[row], &is_micro);
  out = aligned(out, size, 9 + is_micro); /* the sign of micro has two bytes */
  *out++ = ' ';
  return out;
}

static int64_t text_size(const KernelLines *call, int64_t number) {
  if (number < 0 || number >= call->count) return -1;
  int64_t start = call->starts[number], end = call->starts[number + 1];
  return start < 0 || end < start || end > call->texts_size ? -1 : end - start;
}

/* Writes a line for each row: its columns, or where `apis` has -1 its text alone. Returns how many bytes they have; -1 if
 * there is no room for them, or a text that is asked for is not there. */
KERNEL_API int64_t kernel_lines(const KernelLines *call) {
  uint8_t *out = call->out, *end = call->out + call->capacity;
  for (int64_t row = 0; row < call->rows; row++) {
    int64_t size = text_size(call, call->infos[row]), api_size = 0;
    int has_columns = call->apis[row] >= 0;
    if (has_columns) api_size = text_size(call, call->apis[row]);
    if (size < 0 || api_size < 0 || end - out < MOST_FIXED || end - out - MOST_FIXED < size + api_size) return -1;
    if (has_columns) out = columns(call, row, out);
    memcpy(out, call->texts + call->starts[call->infos[row]], (size_t)size);
    out += size;
    if (!size && has_columns)
      while (out[-1] == ' ') out--;
    *out++ = '\n';
  }
  return out - call->out;
}
