/* What the C files of this package share.
 *
 * The library is plain C11 without Python's API; ctypes calls it without the interpreter's lock. A function gets the
 * addresses and sizes of buffers that the caller owns, and keeps none of them. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* A function that Python calls: all others are hidden. */
#ifdef _WIN32
#define KERNEL_API __declspec(dllexport)
#else
#define KERNEL_API __attribute__((visibility("default")))
#endif

KERNEL_API uint32_t kernel_crc32c(const uint8_t *data, int64_t size);

KERNEL_API int64_t kernel_count_records(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ends,
                                        int64_t fields, int64_t *counts, uint8_t *codecs);

#endif
