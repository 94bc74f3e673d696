/* Lines of cells, of columns of numbers and texts.
 *
 * Nothing is written behind `capacity`: a number has less than MOST_DIGITS bytes, and room for a cell and for what is in
 * front of it is looked for before it is written; `ends` has a place for each row. A text is read where its number is
 * below `texts` and its place is inside of the column's `size` bytes. */
#include <string.h>

#include "decimal.h"
#include "kernel.h"

enum { CELL };

/* Writes a line for each of `rows` rows, and where each ends; returns the bytes, or -1 if `capacity` is too small. */
KERNEL_API int64_t kernel_cell_lines(const KernelCells *columns, int64_t count, int64_t rows, uint8_t *out,
                                     int64_t capacity, int64_t *ends) {
  uint8_t *at = out, *end = out + capacity;
  for (int64_t row = 0; row < rows; row++) {
    for (const KernelCells *column = columns; column < columns + count; column++) {
      int64_t value = column->values[row];
      if (column->before_size < 0 || end - at < column->before_size) return -1;
      if (column->before_size) memcpy(at, column->before, (size_t)column->before_size);
      at += column->before_size;
      if (end - at <= MOST_DIGITS) return -1;
      if (column->kinds[row] == NUMBER) {
        at += signed_digits(at, value);
      } else if (column->kinds[row] == TEXT && 0 <= value && value < column->texts) {
        int64_t start = value ? column->ends[value - 1] : 0, size = column->ends[value] - start;
        if (start < 0 || size < 0 || size > column->size - start) return -1;
        if (end - at < size) return -1;
        memcpy(at, column->text + start, (size_t)size);
        at += size;
      }
    }
    ends[row] = at - out;
  }
  return at - out;
}
