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
  const uint8_t *sets;  /* by the lowest five bits of three bytes: the set of marks that may be there, 0 for none */
  const int64_t *first; /* by set, the first of its members, and where the last one ends */
  const KernelSecretMark *members;
  const uint8_t *text; /* of marks, in small letters; 0 is any byte */
} KernelSecretMarks;

enum { SCOPE };

/* A place in the text of a message where Python inserts what a field holds: `json_messages.HOLE`, which says more. */
typedef struct {
  int64_t row, at, column, address, size;
  int64_t names[SCOPE_NAMES]; /* address of the last field of each name, */
  int64_t name_sizes[SCOPE_NAMES]; /* and its size; -1 for null, and where there is none */
} KernelJsonHole;

/* Messages, and where `kernel_json` writes them. `kernel/json_messages.py` has the same. */
typedef struct {
  const uint64_t *frames; /* address of each frame */
  const int64_t *sizes;
  const int64_t *times;
  int64_t rows;
  int64_t begin;            /* offset in a frame at which its layout begins */
  const uint64_t *programs; /* of each message the address of its program, and that of the program's literals */
  const uint8_t *topic_ids;    /* of 16 bytes each, ascending */
  const uint8_t *topic_texts;  /* what is written behind each of them */
  const int64_t *topic_starts; /* where its text begins in `topic_texts`, and where the last one ends */
  const uint8_t *topic_is_internal;
  int64_t topics;
  const int64_t *first_section; /* by row, and behind the last row; NULL if there are no sections */
  const uint64_t *sections;     /* address of each decompressed section */
  const int64_t *section_sizes;
  uint8_t *scratch; /* for a section that the kernel decompresses */
  int64_t scratch_size;
  int64_t most_plain; /* limits of one message, as `Limits` has them: bytes that are decompressed in any case, */
  int64_t most_packed; /* records and headers beyond one for each byte, all of them */
  int64_t most_records;
  int64_t packed_ratio; /* times its size that a section may become without being counted: */
  int64_t expanded;     /* bytes that sections of the messages that were written became beyond that */
  const KernelSecretMarks *secrets; /* messages with records that may hold one are for the careful way; NULL if none are */
  int64_t packs_records; /* whether `records` fields are packed: their bytes in place of their records */
  KernelJsonHole *holes;
  int64_t hole_capacity;
  int64_t hole_count; /* of those that are filled */
  uint8_t *out;
  int64_t capacity;
  int64_t *ends; /* by row, as are the next two */
  uint8_t *codes;
  KernelJsonReport *reports;
} KernelJson;

/* Returns the row for which there was no room, or `rows`. */
KERNEL_API int64_t kernel_json(KernelJson *call);
KERNEL_API int64_t kernel_join(const uint64_t *parts, const int64_t *sizes, int64_t count, uint8_t *out);
KERNEL_API int64_t kernel_compressed_sections(const uint64_t *fields, const int64_t *sizes, int64_t count,
                                              int64_t capacity, int64_t *field, int64_t *codec, uint64_t *address,
                                              int64_t *section_size);

#endif

KERNEL_API int64_t kernel_contain(const uint64_t *frames, const int64_t *sizes, int64_t rows, const uint8_t *marks,
                                  const int64_t *lengths, const int64_t *anchors, int64_t count, uint8_t *found);

KERNEL_API int64_t kernel_may_hold_secrets(const uint64_t *pieces, const int64_t *sizes, int64_t count,
                                           const KernelSecretMarks *marks, uint8_t *found);

/* Rows of exchanges as columns, and where their lines are written. `cli/render/lines.py` has the same. */
typedef struct {
  int64_t rows;
  const int64_t *numbers; /* by row, as are the columns below */
  const int64_t *times;   /* nanoseconds since the capture began */
  const int64_t *connections;
  const int64_t *apis; /* numbers of texts, which are as wide as their column */
  const int64_t *versions;
  const int64_t *ids;
  const int64_t *request_sizes; /* -1 for none */
  const int64_t *response_sizes;
  const int64_t *latencies; /* nanoseconds, INT64_MIN for none */
  const int64_t *infos;     /* numbers of texts */
  const uint8_t *texts;
  int64_t texts_size;
  const int64_t *starts; /* where each text begins, and where the last one ends */
  int64_t count;         /* of texts */
  uint8_t *out;
  int64_t capacity;
} KernelLines;

KERNEL_API int64_t kernel_lines(const KernelLines *call);

KERNEL_API uint32_t kernel_crc32c(const uint8_t *data, int64_t size);

KERNEL_API int64_t kernel_have_messages(const uint64_t *fields, const int64_t *sizes, int64_t count, uint8_t *found);

KERNEL_API int64_t kernel_have_other_checksums(const uint64_t *fields, const int64_t *sizes, int64_t count,
                                               uint8_t *found);

KERNEL_API int64_t kernel_count_records(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ends,
                                        int64_t fields, int64_t *counts, uint8_t *codecs);

/* Frames of one layout, and the columns into which `kernel_shred` reads them. `kernel/shredding.py` has the same. */
typedef struct {
  const uint64_t *frames; /* address of each frame */
  const int64_t *sizes;
  int64_t rows;
  int64_t begin; /* offset in a frame at which its layout begins */
  const int32_t *program;
  int64_t columns;
  int64_t capacity;      /* values of each column of which some are kept */
  const uint8_t *wanted; /* by column, as are the next three */
  int64_t *base;         /* place of its first value in `values`, `positions`, `in_row` */
  int64_t *counts;       /* of its values */
  int64_t *saved;        /* the same before the row that is being read */
  int64_t *values;
  int64_t *positions; /* offsets in the frame: of a text, bytes or records, where the content begins */
  int32_t *in_row;
  uint8_t *keys;
  int64_t key_capacity;
  int64_t *key_ends; /* by row, as are the next three */
  uint8_t *errors;
  int64_t *error_at;
  uint8_t *unclean; /* whether a field that is to be checked is not what it should be */
  /* NULL, or by row the first of its pieces and the one behind its last; none of a frame that is in one piece. A frame
   * in pieces has room for all of its bytes, to which those are copied that are read. */
  const int64_t *first_piece;
  const int64_t *stop_piece;
  const uint64_t *pieces; /* address of each */
  const int64_t *piece_sizes;
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

/* A column of cells: `bulk/cell_lines.py` has the same. */
typedef struct {
  const uint8_t *before; /* what is written in front of each cell */
  int64_t before_size;
  const int64_t *values; /* numbers, or the numbers of texts */
  const uint8_t *kinds;  /* 0 for an empty cell, 1 for a number, 2 for a text */
  const uint8_t *text;   /* all texts, one behind the other, */
  int64_t size;          /* their bytes, */
  const int64_t *ends;   /* where each ends, */
  int64_t texts;         /* and how many there are */
} KernelCells;

KERNEL_API int64_t kernel_cell_lines(const KernelCells *columns, int64_t count, int64_t rows, uint8_t *out,
                                     int64_t capacity, int64_t *ends);

/* Runs of streams, and the frames in them: `framing/fast_path.py` has the same. */
typedef struct {
  const uint64_t *memory; /* where the bytes of each run are, 0 of a gap */
  const int64_t *starts;  /* stream offsets */
  const int64_t *ends;
  int64_t largest;      /* of the frames that are believed, with their prefixes */
  int64_t directions;   /* each has runs up to before its `highs`, and is followed from an offset in one of them on: */
  const int64_t *highs; /* there is one before each of them at least */
  int64_t *rows;
  int64_t *offsets;
  int64_t *frames; /* of each the run in which it begins, its offset and size, and the run behind its last one */
  int64_t capacity;
  int64_t count;
} KernelRuns;

KERNEL_API int64_t kernel_frames(KernelRuns *runs);

/* Segments, and what is known of their connections: `transport/tcp_facts.py` has the same. */
typedef struct {
  int64_t rows;
  const int64_t *time_ns, *direction;
  const uint32_t *seq, *ack;
  const uint8_t *flags;
  const int64_t *size, *missing, *window, *scale;
  int64_t directions;
  int64_t *packets, *bytes; /* by direction */
  int32_t *zero_windows, *full_windows;
  int8_t *scales;
  int64_t *limits;
  int8_t *opener; /* by connection */
  int64_t *syn_ns, *handshake_ns;
  int32_t *acks;
  int64_t *ack_ns, *least_ack_ns, *end, *end_ns;
} KernelTcpFacts;

KERNEL_API int64_t kernel_tcp_facts(KernelTcpFacts *facts);

/* Segments, and what is known of their deliveries: `transport/deliveries.py` has the same. */
typedef struct {
  int64_t rows;
  const int64_t *time_ns, *direction;
  const uint32_t *seq, *ack;
  const uint8_t *flags;
  const int64_t *size, *missing, *window;
  int64_t directions;
  int64_t *first_seq, *sent, *acked, *sent_ns, *waiting_ns, *idle_ns, *retry_seq, *retry_ns, *free_ns; /* by direction */
  int32_t *retries, *retry_size, *heard, *largest, *largest_acked;
  int8_t *is_closed;
  int64_t *last_ns, *trip_ns; /* by connection */
  int64_t *events; /* of each a direction and a kind, and a time */
  int64_t count;
} KernelDeliveries;

KERNEL_API int64_t kernel_deliveries(KernelDeliveries *all);

#endif
