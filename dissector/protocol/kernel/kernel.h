/* What the C files of this package share.
 *
 * The library is plain C11 without Python's API; ctypes calls it without the interpreter's lock. A function gets the
 * addresses and sizes of buffers that the caller owns, and keeps none of them. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "shared.h"

/* A function that Python calls: all others are hidden. */
#ifdef _WIN32
#define KERNEL_API __declspec(dllexport)
#else
#define KERNEL_API __attribute__((visibility("default")))
#endif

/* What a reader of a message wants to know besides: `json_messages.REPORT` in Python, which says more. */
typedef struct {
  REPORT_FIELDS
} KernelJsonReport;

/* What names of secrets contain. `secret_marks.py` makes them. */
typedef struct {
  int64_t before; /* how far it begins in front of a place */
  int64_t start, length;
  int64_t ends; /* whether no letter and no digit follows */
} KernelSecretMark;

typedef struct {
  SECRET_MARKS_FIELDS
} KernelSecretMarks;

enum { SCOPE };

/* A place in the text of a message where Python inserts what a field holds: `json_messages.HOLE`, which says more. */
typedef struct {
  HOLE_FIELDS
  int64_t names[SCOPE_NAMES]; /* address of the last field of each name, */
  int64_t name_sizes[SCOPE_NAMES]; /* and its size; -1 for null, and where there is none */
} KernelJsonHole;

/* `JSON` of `kernel/json_messages.py`. */
typedef struct {
  JSON_FIELDS
} KernelJson;

/* Returns the row for which there was no room, or `rows`. */
KERNEL_API int64_t kernel_json(KernelJson *call);
KERNEL_API int64_t kernel_join(const uint64_t *parts, const int64_t *sizes, int64_t count, uint8_t *out);
KERNEL_API int64_t kernel_compressed_sections(const uint64_t *fields, const int64_t *sizes, int64_t count,
                                              int64_t capacity, int64_t *field, int64_t *codec, uint64_t *address,
                                              int64_t *section_size);

KERNEL_API int64_t kernel_contain(const uint64_t *frames, const int64_t *sizes, int64_t rows, const uint8_t *marks,
                                  const int64_t *lengths, const int64_t *anchors, int64_t count, uint8_t *found);

KERNEL_API int64_t kernel_may_hold_secrets(const uint64_t *pieces, const int64_t *sizes, int64_t count,
                                           const KernelSecretMarks *marks, uint8_t *found);

/* `LINES` of `cli/render/lines.py`. */
typedef struct {
  LINES_FIELDS
} KernelLines;

KERNEL_API int64_t kernel_lines(const KernelLines *call);

KERNEL_API uint32_t kernel_crc32c(const uint8_t *data, int64_t size);

KERNEL_API int64_t kernel_have_wrappers(const uint64_t *fields, const int64_t *sizes, int64_t count, uint8_t *found);
KERNEL_API int64_t kernel_have_batches(const uint64_t *fields, const int64_t *sizes, int64_t count, uint8_t *found);

KERNEL_API int64_t kernel_have_other_checksums(const uint64_t *fields, const int64_t *sizes, int64_t count,
                                               uint8_t *found);

KERNEL_API int64_t kernel_count_records(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ends,
                                        int64_t fields, int64_t *counts, uint8_t *codecs);

/* `SHRED` of `kernel/shredding.py`. */
typedef struct {
  SHRED_FIELDS
} KernelShred;

/* Returns the row for which there was no room, or `rows`. */
KERNEL_API int64_t kernel_shred(KernelShred *out);
/* Reads with one after the other; returns their number. What a frame fits is without an error then. */
KERNEL_API int64_t kernel_fits(KernelShred *layouts, int64_t count);
KERNEL_API int64_t kernel_number_keys(const uint8_t *keys, const int64_t *key_ends, const uint8_t *errors, int64_t rows,
                                      int32_t *slots, int32_t bits, int32_t *numbers, int32_t *first_rows);

/* An entry of a `records` field, and what became of its records: `columns.ENTRY` in Python, which says more. */
typedef struct {
  ENTRY_FIELDS
} KernelEntry;

KERNEL_API int64_t kernel_split_records(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ends,
                                        int64_t fields, int64_t *place, KernelEntry *entries, int64_t capacity,
                                        int64_t most_bytes);
KERNEL_API int64_t kernel_open_sections(const uint8_t *data, int64_t size, KernelEntry *entries, int64_t first,
                                        int64_t end, uint8_t *out, int64_t capacity, int64_t *filled);
KERNEL_API int64_t kernel_check_batches(const uint8_t *data, int64_t size, const KernelEntry *entries, int64_t count,
                                        uint8_t *valid);
KERNEL_API int64_t kernel_read_records(const uint8_t *data, int64_t size, KernelEntry *entries, int64_t first,
                                       int64_t end, int64_t most_headers, int64_t *record_columns,
                                       int64_t record_capacity, int64_t *header_columns, int64_t header_capacity,
                                       int64_t *filled);
/* Sums of the hashes of a batch's records, of those with a key, and how many these are. */
typedef struct {
  uint64_t records, keyed, keyed_count;
} KernelRecordSum;

KERNEL_API int64_t kernel_sum_records(const uint8_t *data, int64_t size, KernelEntry *entries, int64_t count,
                                      const uint8_t *key, KernelRecordSum *sums);
KERNEL_API int64_t kernel_gather(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *sizes,
                                 int64_t count, int32_t *offsets, uint8_t *out, int64_t capacity);

KERNEL_API int64_t kernel_pcap_records(const uint8_t *data, int64_t size, int64_t at, int64_t stop, int64_t header,
                                       int64_t largest, int32_t is_big, int64_t *positions, int64_t most);
KERNEL_API int64_t kernel_packet_blocks(const uint8_t *data, int64_t size, int64_t at, int64_t stop, int64_t largest,
                                        int32_t is_big, int64_t *positions, int64_t most);
KERNEL_API int64_t kernel_tcp_headers(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ips,
                                      const int64_t *captured, const int64_t *ends, int64_t rows, int64_t *columns,
                                      uint64_t *keys, uint8_t *higher);
KERNEL_API int64_t kernel_find_pairs(const uint64_t *keys, const int64_t *places, int64_t rows, const int32_t *table,
                                     int64_t mask, const uint64_t *entries, int64_t *found);

/* `CELLS` of `bulk/cell_lines.py`. */
typedef struct {
  CELLS_FIELDS
} KernelCells;

KERNEL_API int64_t kernel_cell_lines(const KernelCells *columns, int64_t count, int64_t rows, uint8_t *out,
                                     int64_t capacity, int64_t *ends);

/* `RUNS` of `framing/fast_path.py`. */
typedef struct {
  RUNS_FIELDS
} KernelRuns;

KERNEL_API int64_t kernel_frames(KernelRuns *runs);

/* `TCP_FACTS` of `transport/tcp_facts.py`. */
typedef struct {
  TCP_FACTS_FIELDS
} KernelTcpFacts;

KERNEL_API int64_t kernel_tcp_facts(KernelTcpFacts *facts);

/* `MADE_PACKETS` of `proxy_server/made_packets.py`. */
typedef struct {
  MADE_PACKETS_FIELDS
} KernelMadePackets;

KERNEL_API int64_t kernel_made_packets(const KernelMadePackets *side, int64_t time_ns, const uint8_t *data,
                                       int64_t size, int32_t copied);

/* `WAITING`, `LOOKED_AT` and `ORDINARY` of `proxy_server/ordinary.py`. */
typedef struct {
  WAITING_FIELDS
} KernelWaiting;

typedef struct {
  LOOKED_AT_FIELDS
} KernelLookedAt;

typedef struct {
  ORDINARY_FIELDS
} KernelOrdinary;

KERNEL_API int64_t kernel_ordinary_frames(KernelOrdinary *stream, KernelWaiting *waiting, const uint8_t *data,
                                          int64_t at, int64_t end);

/* `DELIVERIES` of `transport/deliveries.py`. */
typedef struct {
  DELIVERIES_FIELDS
} KernelDeliveries;

KERNEL_API int64_t kernel_deliveries(KernelDeliveries *all);

#endif
