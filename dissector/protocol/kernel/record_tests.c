/* Tests of many `records` fields at once: of each, whether one of its entries passes.
 *
 * Nothing outside a field is read: `entry_at` has found all bytes of a batch's header. */
#include "kernel.h"
#include "record_entries.h"

/* Says of each field whether it has a message of magic 0 or 1 that is compressed: others are inside. */
KERNEL_API int64_t kernel_have_wrappers(const uint64_t *fields, const int64_t *sizes, int64_t count, uint8_t *found) {
  for (int64_t n = 0; n < count; n++) {
    const uint8_t *data = (const uint8_t *)(uintptr_t)fields[n];
    found[n] = 0;
    for (int64_t at = 0, next; at < sizes[n] && !found[n]; at = next) {
      found[n] = entry_at(data, at, sizes[n], &next) == ENTRY_MESSAGE && data[at + MAGIC_AT + 1] & CODEC_MASK;
    }
  }
  return count;
}

/* Says of each field whether it has a batch. */
KERNEL_API int64_t kernel_have_batches(const uint64_t *fields, const int64_t *sizes, int64_t count, uint8_t *found) {
  for (int64_t n = 0; n < count; n++) {
    const uint8_t *data = (const uint8_t *)(uintptr_t)fields[n];
    found[n] = 0;
    for (int64_t at = 0, next; at < sizes[n] && !found[n]; at = next) {
      found[n] = entry_at(data, at, sizes[n], &next) == ENTRY_BATCH;
    }
  }
  return count;
}

/* Says of each field whether it has a batch whose checksum is not that of its bytes. */
KERNEL_API int64_t kernel_have_other_checksums(const uint64_t *fields, const int64_t *sizes, int64_t count,
                                               uint8_t *found) {
  for (int64_t n = 0; n < count; n++) {
    const uint8_t *data = (const uint8_t *)(uintptr_t)fields[n];
    found[n] = 0;
    for (int64_t at = 0, next; at < sizes[n] && !found[n]; at = next) {
      if (entry_at(data, at, sizes[n], &next) == ENTRY_BATCH) {
        uint32_t sum = kernel_crc32c(data + at + CRC_FROM, next - at - CRC_FROM);
        found[n] = sum != (uint32_t)be_int32(data + at + CRC_AT);
      }
    }
  }
  return count;
}
