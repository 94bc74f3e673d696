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

#endif
