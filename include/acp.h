/* The Advanced Communication Primitives (ACP), on tsumugi. Generated from
 * acp/src by cbindgen; do not edit.
 *
 * Names and meaning are those of ACP 3. A call that fails returns the value that
 * ACP documents; tsumugi_acp_error has the reason. Any thread may call, except for
 * the calls that all ranks make together. Each call on a container is atomic with
 * respect to all others, except for calls that go through all of a set, multiset
 * or map: these go from slot to slot.
 */

#ifndef TSUMUGI_ACP_H
#define TSUMUGI_ACP_H

#include <stddef.h>
#include <stdint.h>

#define ACP_ATKEY_NULL 0LLU
#define ACP_GA_NULL 0LLU
#define ACP_HANDLE_NULL 0LLU
#define ACP_HANDLE_ALL 0xffffffffffffffffLLU
#define ACP_HANDLE_CONT 0xfffffffffffffffeLLU
#define ACP_WSD_NULL ((acp_wsd_t)(-1))
#define ACP_CH_NULL ((acp_ch_t)0)
#define ACP_REQUEST_NULL ((acp_request_t)0)
#define ACP_SEGBUF_NULL ((acp_segbuf_t)0)


/**
 * A workspace.
 */
typedef struct acp_wsditem acp_wsditem;

/**
 * An end of a channel.
 */
typedef struct chitem chitem;

/**
 * A send, a receive or a free that was begun on a channel.
 */
typedef struct chreqitem chreqitem;

/**
 * An end of a segmented buffer.
 */
typedef struct segbufitem segbufitem;

/**
 * The global address of a byte of any rank's memory; 0 is no address. The bytes of
 * one region have consecutive addresses.
 */
typedef uint64_t acp_ga_t;

/**
 * The key of a region that this rank has registered; 0 is no key.
 */
typedef uint64_t acp_atkey_t;

/**
 * The handle of a copy or an atomic operation that was begun; 0 is no handle.
 */
typedef int64_t acp_handle_t;

/**
 * An end of a channel; NULL is no channel.
 */
typedef chitem *acp_ch_t;

/**
 * A request, that is, an operation that was begun on a channel; it lives until it
 * is waited for. NULL is no request.
 */
typedef chreqitem *acp_request_t;

/**
 * An end of a segmented buffer; NULL is no end.
 */
typedef segbufitem *acp_segbuf_t;

/**
 * A workspace; `ACP_WSD_NULL` is no workspace.
 */
typedef acp_wsditem *acp_wsd_t;

/**
 * A vector of bytes.
 */
typedef struct {
  /**
   * The address of the header, which holds the address of the bytes, their
   * number, and the number of bytes for which there is room. `ACP_GA_NULL` is no
   * vector.
   */
  acp_ga_t ga;
} acp_vector_t;

/**
 * A byte of a vector, or its end.
 */
typedef struct {
  /**
   * The vector.
   */
  acp_vector_t vector;
  /**
   * The index of the byte.
   */
  int index;
} acp_vector_it_t;

/**
 * A deque of bytes.
 */
typedef struct {
  /**
   * The address of the header, which holds the address of the ring of bytes, the
   * place in the ring where the bytes begin, their number, and the number of
   * bytes for which there is room. `ACP_GA_NULL` is no deque.
   */
  acp_ga_t ga;
} acp_deque_t;

/**
 * A byte of a deque, or its end.
 */
typedef struct {
  /**
   * The deque.
   */
  acp_deque_t deque;
  /**
   * The index of the byte.
   */
  int index;
} acp_deque_it_t;

/**
 * A range of bytes in global memory.
 */
typedef struct {
  /**
   * The address of the first byte.
   */
  acp_ga_t ga;
  /**
   * The number of bytes.
   */
  size_t size;
} acp_element_t;

/**
 * Two ranges: a key and a value, or two pieces of a deque.
 */
typedef struct {
  /**
   * The key, or the first piece.
   */
  acp_element_t first;
  /**
   * The value, or the second piece.
   */
  acp_element_t second;
} acp_pair_t;

/**
 * A list.
 */
typedef struct {
  /**
   * The address of the header; `ACP_GA_NULL` is no list.
   */
  acp_ga_t ga;
} acp_list_t;

/**
 * An element of a list, or its end.
 */
typedef struct {
  /**
   * The list.
   */
  acp_list_t list;
  /**
   * The address of the element; `ACP_GA_NULL` after a failure.
   */
  acp_ga_t elem;
} acp_list_it_t;

/**
 * Compares two elements: returns a number below, equal to or above 0.
 */
typedef int (*acp_list_comp_t)(acp_element_t elem1, acp_element_t elem2);

/**
 * A set.
 */
typedef struct {
  /**
   * The address of the directory, which has a word for each of the ranks;
   * `ACP_GA_NULL` is no set.
   */
  acp_ga_t ga;
  /**
   * The number of ranks that have slots.
   */
  uint64_t num_ranks;
  /**
   * The number of slots of each of these ranks.
   */
  uint64_t num_slots;
} acp_set_t;

/**
 * An element of a set, or its end.
 */
typedef struct {
  /**
   * The set.
   */
  acp_set_t set;
  /**
   * Which of the ranks of the directory has the element, from 0.
   */
  int rank;
  /**
   * The slot on that rank.
   */
  int slot;
  /**
   * The address of the element; `ACP_GA_NULL` at the end.
   */
  acp_ga_t elem;
} acp_set_it_t;

/**
 * A multiset.
 */
typedef struct {
  /**
   * The address of the directory, which has a word for each of the ranks;
   * `ACP_GA_NULL` is no multiset.
   */
  acp_ga_t ga;
  /**
   * The number of ranks that have slots.
   */
  uint64_t num_ranks;
  /**
   * The number of slots of each of these ranks.
   */
  uint64_t num_slots;
} acp_multiset_t;

/**
 * An element of a multiset, or its end.
 */
typedef struct {
  /**
   * The multiset.
   */
  acp_multiset_t set;
  /**
   * Which of the ranks of the directory has the element, from 0.
   */
  int rank;
  /**
   * The slot on that rank.
   */
  int slot;
  /**
   * The address of the element; `ACP_GA_NULL` at the end.
   */
  acp_ga_t elem;
} acp_multiset_it_t;

/**
 * A map.
 */
typedef struct {
  /**
   * The address of the directory, which has a word for each of the ranks;
   * `ACP_GA_NULL` is no map.
   */
  acp_ga_t ga;
  /**
   * The number of ranks that have slots.
   */
  uint64_t num_ranks;
  /**
   * The number of slots of each of these ranks.
   */
  uint64_t num_slots;
} acp_map_t;

/**
 * An element of a map, or its end.
 */
typedef struct {
  /**
   * The map.
   */
  acp_map_t map;
  /**
   * Which of the ranks of the directory has the element, from 0.
   */
  int rank;
  /**
   * The slot on that rank.
   */
  int slot;
  /**
   * The address of the element; `ACP_GA_NULL` at the end.
   */
  acp_ga_t elem;
} acp_map_it_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Prepares this process as a rank of its job; returns when all ranks have called
 * it. Arguments that begin with `--acp-` are removed from `argv`: `--acp-size-smem
 * N` (bytes of starter memory, 10,240 by default), `--acp-size-smem-dl N` (bytes
 * of each rank's heap for `acp_malloc`, at least 64 MiB),
 * `--acp-malloc-hook-small`, `-large`, `-huge`, `-low` and `-high N`
 * (`include/acp_malloc.c` describes them). All other options of ACP are accepted
 * and have no effect. Returns 0, or -1 on failure.
 *
 * # Safety
 *
 * `argc` and `argv` are those of main, or NULL.
 */
int acp_init(int *argc, char ***argv);

/**
 * Ends the rank that `acp_init` began; returns when all ranks have called it.
 * Memory that was not freed is freed. Registered memory becomes the program's
 * private memory again; all other threads of the process are stopped while that
 * happens. Returns 0, or -1 on failure.
 */
int acp_finalize(void);

/**
 * Begins anew with `rank` as this process's number: memory, channels and handles
 * are gone, starter memory is zero. All ranks must call it, each with a different
 * number. Returns 0, or -1 on failure.
 */
int acp_reset(int rank);

/**
 * Prints `str` and the reason of the last call that failed, and aborts the
 * process; the job ends.
 *
 * # Safety
 *
 * `str` is NULL or a C string.
 */
void acp_abort(const char *str);

/**
 * Ends the process with an exit code that reports a failure; the job ends. It is
 * not a part of ACP's interface, but programs written for ACP call it.
 */
void iacp_abort_cl(void);

/**
 * Waits until all ranks have called it. Returns 0, or -1 on failure.
 */
int acp_sync(void);

/**
 * The rank of this process, or -1.
 */
int acp_rank(void);

/**
 * The number of ranks, or -1.
 */
int acp_procs(void);

/**
 * Why the last call of this thread that failed did so. The string is valid until
 * the next call of this thread that fails. It is not a part of ACP's interface.
 */
const char *tsumugi_acp_error(void);

/**
 * The global address of the first byte of `rank`'s starter memory, or
 * `ACP_GA_NULL`.
 */
acp_ga_t acp_query_starter_ga(int rank);

/**
 * Makes the `size` bytes at `addr`, which may lie anywhere in this process,
 * reachable for all ranks. Their pages become shared memory; while that happens,
 * all other threads of the process are stopped, by a real-time signal. A rank can
 * have 255 registrations at a time. Returns `ACP_ATKEY_NULL` on failure.
 *
 * # Safety
 *
 * The memory is readable and writable, and stays so until it is unregistered.
 */
acp_atkey_t acp_register_memory(void *addr, size_t size, int color);

/**
 * Ends a registration, and waits until no rank reaches the memory by it any more.
 * Returns 0, or -1 on failure.
 */
int acp_unregister_memory(acp_atkey_t atkey);

/**
 * The global address of a byte of a region, or `ACP_GA_NULL`.
 */
acp_ga_t acp_query_ga(acp_atkey_t atkey, void *addr);

/**
 * The local address of a byte of this rank's memory, or NULL.
 */
void *acp_query_address(acp_ga_t ga);

/**
 * The rank that owns the memory at `ga`, or -1 if no rank has memory there. The end of a
 * region counts as its memory. Reads the table of the rank's regions at first.
 */
int acp_query_rank(acp_ga_t ga);

/**
 * The colour of an address, which is always 0, or -1.
 */
int acp_query_color(acp_ga_t ga);

/**
 * The number of colours, which is always 1, or -1.
 */
int acp_colors(void);

/**
 * Copies `size` bytes from `src` to `dst`, each in memory of any rank, when
 * `order` and all operations before it are complete. On failure it returns
 * `ACP_HANDLE_NULL` and prints the reason on standard error.
 */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

/**
 * Stores `newval` in the 4 bytes at `src` if they hold `oldval`. The old value
 * goes to `dst`, memory of the calling rank.
 */
acp_handle_t acp_cas4(acp_ga_t dst,
                      acp_ga_t src,
                      uint32_t oldval,
                      uint32_t newval,
                      acp_handle_t order);

/**
 * Does the same as `acp_cas4` on 8 bytes.
 */
acp_handle_t acp_cas8(acp_ga_t dst,
                      acp_ga_t src,
                      uint64_t oldval,
                      uint64_t newval,
                      acp_handle_t order);

/**
 * Stores `value` in the 4 bytes at `src`. The old value goes to `dst`, memory of
 * the calling rank.
 */
acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Stores `value` in the 8 bytes at `src`. The old value goes to `dst`, memory of
 * the calling rank.
 */
acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Adds `value` to the 4 bytes at `src`. The old value goes to `dst`, memory of the
 * calling rank.
 */
acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Adds `value` to the 8 bytes at `src`. The old value goes to `dst`, memory of the
 * calling rank.
 */
acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Flips the bits of `value` in the 4 bytes at `src`. The old value goes to `dst`,
 * memory of the calling rank.
 */
acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Flips the bits of `value` in the 8 bytes at `src`. The old value goes to `dst`,
 * memory of the calling rank.
 */
acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Sets the bits of `value` in the 4 bytes at `src`. The old value goes to `dst`,
 * memory of the calling rank.
 */
acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Sets the bits of `value` in the 8 bytes at `src`. The old value goes to `dst`,
 * memory of the calling rank.
 */
acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Keeps only the bits of `value` in the 4 bytes at `src`. The old value goes to
 * `dst`, memory of the calling rank.
 */
acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Keeps only the bits of `value` in the 8 bytes at `src`. The old value goes to
 * `dst`, memory of the calling rank.
 */
acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Waits until an operation and all operations before it are complete; with
 * `ACP_HANDLE_ALL`, all operations that were begun.
 */
void acp_complete(acp_handle_t handle);

/**
 * Returns 1 if the operation or one before it is not complete yet, otherwise 0.
 */
int acp_inquire(acp_handle_t handle);

/**
 * Makes this rank's end of a channel from `sender` to `receiver`, or returns NULL.
 * It does not wait for the other rank.
 */
acp_ch_t acp_create_ch(int sender, int receiver);

/**
 * Ends a channel on which no operation is in progress. Returns 0, or -1 on failure.
 *
 * # Safety
 *
 * `ch` is NULL or an end of a channel.
 */
int acp_free_ch(acp_ch_t ch);

/**
 * Ends a channel as `acp_free_ch` does, with a request to be waited for.
 *
 * # Safety
 *
 * `ch` is NULL or an end of a channel.
 */
acp_request_t acp_nbfree_ch(acp_ch_t ch);

/**
 * Begins to send the `size` bytes at `buf`. They must not change until the request
 * has been waited for.
 *
 * # Safety
 *
 * `ch` is NULL or an end of a channel; `buf` is readable until the request has
 * been waited for.
 */
acp_request_t acp_nbsend_ch(acp_ch_t ch, void *buf, size_t size);

/**
 * Begins to receive a message into the `size` bytes at `buf`. The bytes of the
 * message for which there is no room are lost.
 *
 * # Safety
 *
 * `ch` is NULL or an end of a channel; until the request has been waited for,
 * `buf` is writable and no other code uses it.
 */
acp_request_t acp_nbrecv_ch(acp_ch_t ch, void *buf, size_t size);

/**
 * Waits for a request and frees it. Returns the number of bytes in the buffer for
 * a receive, 0 for other requests, or `(size_t)-1` on failure.
 *
 * # Safety
 *
 * `request` is NULL or a request that has not been waited for.
 */
size_t acp_wait_ch(acp_request_t request);

/**
 * Waits for `count` requests. Writes the result of `acp_wait_ch` for each to
 * `sizes`, unless `sizes` is NULL. Returns 0, or -1 if a request failed.
 *
 * # Safety
 *
 * `request` is valid for a read of `count` requests, each as for `acp_wait_ch`;
 * `sizes` is NULL or valid for a write of `count` sizes.
 */
int acp_waitall_ch(acp_request_t *request, int count, size_t *sizes);

/**
 * Makes the end that sends the `segnum` segments of `segsize` bytes at `buf` to
 * `dst_rank`; returns NULL on failure.
 *
 * # Safety
 *
 * As for `acp_register_memory`, until the end is freed.
 */
acp_segbuf_t acp_create_src_segbuf(int dst_rank,
                                   void *buf,
                                   size_t segsize,
                                   size_t segnum);

/**
 * Makes the end that receives from `dst_rank`, which is the rank of the source.
 *
 * # Safety
 *
 * As for `acp_register_memory`, until the end is freed.
 */
acp_segbuf_t acp_create_dst_segbuf(int dst_rank,
                                   void *buf,
                                   size_t segsize,
                                   size_t segnum);

/**
 * Connects with the other end, and waits for it. Returns 0, or 1 on failure.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_connect_segbuf(acp_segbuf_t segbuf);

/**
 * Returns 0 if the end is connected, otherwise 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_isconnected_segbuf(acp_segbuf_t segbuf);

/**
 * At the sink: gives the first segment back, so that the source may overwrite it.
 * Returns 0, or 1 on failure.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_ready_segbuf(acp_segbuf_t segbuf);

/**
 * At the source: sends the next segment. Returns 0, or 1 if there is no room for
 * it.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_ack_segbuf(acp_segbuf_t segbuf);

/**
 * Returns 0 if there is a segment that the source may write and send, otherwise 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_isready_segbuf(acp_segbuf_t segbuf);

/**
 * Returns 0 if there is a segment that the sink may read, otherwise 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_isacked_segbuf(acp_segbuf_t segbuf);

/**
 * The number of segments that the sink has given back, or -1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int64_t acp_query_segbuf_head(acp_segbuf_t segbuf);

/**
 * The number of segments that the source has sent, or -1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int64_t acp_query_segbuf_tail(acp_segbuf_t segbuf);

/**
 * At the source: the number of segments that have arrived in the sink's memory, so
 * that the source may write to these segments again. Returns -1 on failure.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int64_t acp_query_segbuf_sent(acp_segbuf_t segbuf);

/**
 * Ends the connection, and waits until the other end does so too. Returns 0, or 1
 * on failure.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_disconnect_segbuf(acp_segbuf_t segbuf);

/**
 * Frees an end that is not connected. Returns 0, or 1 on failure.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end; no thread uses it any more.
 */
int acp_free_segbuf(acp_segbuf_t segbuf);

/**
 * Makes a workspace of `size` bytes, zero at first, on the ranks that
 * `acp_setparams_ws` has set. All ranks must call it. Returns `ACP_WSD_NULL` on
 * failure.
 */
acp_wsd_t acp_create_ws(size_t size);

/**
 * Sets the rank where the next workspace begins, and how many bytes of it each
 * rank has; must be the same on all ranks. By default 0 and 1 MiB. Each workspace
 * begins behind the one made before it. Returns 0, or 1 on failure.
 */
int acp_setparams_ws(size_t proc_start, size_t size_default);

/**
 * Ends a workspace. No rank may use it any more. All ranks must call it.
 *
 * # Safety
 *
 * `WSD` is `ACP_WSD_NULL` or a workspace.
 */
void acp_destroy_ws(acp_wsd_t WSD);

/**
 * Copies `size` bytes of a workspace, from `offset` on, to `ga`. Returns 0, or 1
 * on failure.
 *
 * # Safety
 *
 * `WSD` is a workspace.
 */
int acp_read_ws(acp_wsd_t WSD, acp_ga_t ga, size_t size, size_t offset);

/**
 * Copies `size` bytes from `ga` to a workspace, from `offset` on. Returns 0, or 1
 * on failure.
 *
 * # Safety
 *
 * `WSD` is a workspace.
 */
int acp_write_ws(acp_wsd_t WSD, acp_ga_t ga, size_t size, size_t offset);

/**
 * Allocates `size` bytes from the heap of `rank`; returns `ACP_GA_NULL` on
 * failure. Lock-free.
 */
acp_ga_t acp_malloc(size_t size, int rank);

/**
 * Frees memory that `acp_malloc` allocated, on any rank; `ACP_GA_NULL` is allowed.
 * Lock-free.
 */
void acp_free(acp_ga_t ga);

/**
 * `vector1` becomes a copy of `vector2`.
 */
void acp_assign_vector(acp_vector_t vector1, acp_vector_t vector2);

/**
 * `vector` becomes a copy of the bytes from `start` up to `end`.
 */
void acp_assign_range_vector(acp_vector_t vector,
                             acp_vector_it_t start,
                             acp_vector_it_t end);

/**
 * The global address of the byte at `index`, or `ACP_GA_NULL` if there is none.
 */
acp_ga_t acp_at_vector(acp_vector_t vector, int index);

/**
 * The iterator of the first byte.
 */
acp_vector_it_t acp_begin_vector(acp_vector_t vector);

/**
 * The number of bytes for which there is room.
 */
size_t acp_capacity_vector(acp_vector_t vector);

/**
 * Removes all bytes.
 */
void acp_clear_vector(acp_vector_t vector);

/**
 * Makes a vector of `size` bytes, on `rank`. On failure the address of the vector
 * is `ACP_GA_NULL`.
 */
acp_vector_t acp_create_vector(size_t size, int rank);

/**
 * Frees the memory of the vector. No rank may use it any more.
 */
void acp_destroy_vector(acp_vector_t vector);

/**
 * Returns 1 if the vector has no bytes, otherwise 0.
 */
int acp_empty_vector(acp_vector_t vector);

/**
 * The iterator behind the last byte.
 */
acp_vector_it_t acp_end_vector(acp_vector_t vector);

/**
 * Removes `size` bytes at `it`. Returns the iterator of the byte that followed
 * them.
 */
acp_vector_it_t acp_erase_vector(acp_vector_it_t it, size_t size);

/**
 * Removes the bytes from `start` up to `end`. Returns the iterator of the byte
 * that followed them.
 */
acp_vector_it_t acp_erase_range_vector(acp_vector_it_t start, acp_vector_it_t end);

/**
 * Inserts the `size` bytes at `ga` before `it`. Returns the iterator of the first
 * of them.
 */
acp_vector_it_t acp_insert_vector(acp_vector_it_t it, acp_ga_t ga, size_t size);

/**
 * Inserts copies of the bytes from `start` up to `end` before `it`. Returns the
 * iterator of the first of them.
 */
acp_vector_it_t acp_insert_range_vector(acp_vector_it_t it,
                                        acp_vector_it_t start,
                                        acp_vector_it_t end);

/**
 * Removes the last `size` bytes.
 */
void acp_pop_back_vector(acp_vector_t vector, size_t size);

/**
 * Appends the `size` bytes at `ga`.
 */
void acp_push_back_vector(acp_vector_t vector, acp_ga_t ga, size_t size);

/**
 * Makes room for `size` bytes in total.
 */
void acp_reserve_vector(acp_vector_t vector, size_t size);

/**
 * The number of bytes.
 */
size_t acp_size_vector(acp_vector_t vector);

/**
 * Exchanges the contents of the two vectors.
 */
void acp_swap_vector(acp_vector_t vector1, acp_vector_t vector2);

/**
 * The iterator `n` bytes further, or back if `n` is negative.
 */
acp_vector_it_t acp_advance_vector_it(acp_vector_it_t it, int n);

/**
 * The global address of the byte, or `ACP_GA_NULL` if there is none.
 */
acp_ga_t acp_dereference_vector_it(acp_vector_it_t it);

/**
 * The number of bytes from `first` to `last`.
 */
int acp_distance_vector_it(acp_vector_it_t first, acp_vector_it_t last);

/**
 * `deque1` becomes a copy of `deque2`.
 */
void acp_assign_deque(acp_deque_t deque1, acp_deque_t deque2);

/**
 * `deque` becomes a copy of the bytes from `start` up to `end`.
 */
void acp_assign_range_deque(acp_deque_t deque, acp_deque_it_t start, acp_deque_it_t end);

/**
 * The global address of the byte at `index`, or `ACP_GA_NULL` if there is none.
 */
acp_ga_t acp_at_deque(acp_deque_t deque, int index);

/**
 * The iterator of the first byte.
 */
acp_deque_it_t acp_begin_deque(acp_deque_t deque);

/**
 * The number of bytes for which there is room.
 */
size_t acp_capacity_deque(acp_deque_t deque);

/**
 * Removes all bytes.
 */
void acp_clear_deque(acp_deque_t deque);

/**
 * Makes an empty deque with room for `size` bytes, on `rank`. On failure the
 * address of the deque is `ACP_GA_NULL`.
 */
acp_deque_t acp_create_deque(size_t size, int rank);

/**
 * Frees the memory of the deque. No rank may use it any more.
 */
void acp_destroy_deque(acp_deque_t deque);

/**
 * Returns 1 if the deque has no bytes, otherwise 0.
 */
int acp_empty_deque(acp_deque_t deque);

/**
 * The iterator behind the last byte.
 */
acp_deque_it_t acp_end_deque(acp_deque_t deque);

/**
 * Removes `size` bytes at `it`. Returns the iterator of the byte that followed
 * them.
 */
acp_deque_it_t acp_erase_deque(acp_deque_it_t it, size_t size);

/**
 * Removes the bytes from `start` up to `end`. Returns the iterator of the byte
 * that followed them.
 */
acp_deque_it_t acp_erase_range_deque(acp_deque_it_t start, acp_deque_it_t end);

/**
 * Inserts the `size` bytes at `ga` before `it`. Returns the iterator of the first
 * of them.
 */
acp_deque_it_t acp_insert_deque(acp_deque_it_t it, acp_ga_t ga, size_t size);

/**
 * Inserts copies of the bytes from `start` up to `end` before `it`. Returns the
 * iterator of the first of them.
 */
acp_deque_it_t acp_insert_range_deque(acp_deque_it_t it,
                                      acp_deque_it_t start,
                                      acp_deque_it_t end);

/**
 * Removes the last `size` bytes.
 */
void acp_pop_back_deque(acp_deque_t deque, size_t size);

/**
 * Removes the first `size` bytes.
 */
void acp_pop_front_deque(acp_deque_t deque, size_t size);

/**
 * Appends the `size` bytes at `ga`.
 */
void acp_push_back_deque(acp_deque_t deque, acp_ga_t ga, size_t size);

/**
 * Inserts the `size` bytes at `ga` before the first byte.
 */
void acp_push_front_deque(acp_deque_t deque, acp_ga_t ga, size_t size);

/**
 * Makes room for `size` bytes in total.
 */
void acp_reserve_deque(acp_deque_t deque, size_t size);

/**
 * The number of bytes.
 */
size_t acp_size_deque(acp_deque_t deque);

/**
 * Exchanges the contents of the two deques. Afterwards neither has more room than
 * it needs.
 */
void acp_swap_deque(acp_deque_t deque1, acp_deque_t deque2);

/**
 * The iterator `n` bytes further, or back if `n` is negative.
 */
acp_deque_it_t acp_advance_deque_it(acp_deque_it_t it, int n);

/**
 * The addresses of the `size` bytes from `it` on, as far as the deque has them:
 * one piece or two.
 */
acp_pair_t acp_dereference_deque_it(acp_deque_it_t it, size_t size);

/**
 * The number of bytes from `first` to `last`.
 */
int acp_distance_deque_it(acp_deque_it_t first, acp_deque_it_t last);

/**
 * `list1` becomes a copy of `list2`.
 */
void acp_assign_list(acp_list_t list1, acp_list_t list2);

/**
 * `list` becomes a copy of the elements from `start` up to `end`.
 */
void acp_assign_range_list(acp_list_t list, acp_list_it_t start, acp_list_it_t end);

/**
 * The iterator of the first element, or the end.
 */
acp_list_it_t acp_begin_list(acp_list_t list);

/**
 * Removes all elements.
 */
void acp_clear_list(acp_list_t list);

/**
 * Makes an empty list with its header on `rank`. On failure the address of the
 * list is `ACP_GA_NULL`.
 */
acp_list_t acp_create_list(int rank);

/**
 * Frees all memory of the list. No rank may use it any more.
 */
void acp_destroy_list(acp_list_t list);

/**
 * Returns 1 if the list has no elements, otherwise 0.
 */
int acp_empty_list(acp_list_t list);

/**
 * The iterator behind the last element.
 */
acp_list_it_t acp_end_list(acp_list_t list);

/**
 * Removes an element. Returns the iterator of the element that followed it.
 */
acp_list_it_t acp_erase_list(acp_list_it_t it);

/**
 * Removes the elements from `start` up to `end`. Returns the iterator of the
 * element that followed them.
 */
acp_list_it_t acp_erase_range_list(acp_list_it_t start, acp_list_it_t end);

/**
 * Inserts a copy of `elem` before `it`, in memory of `rank`. Returns the iterator
 * of the copy.
 */
acp_list_it_t acp_insert_list(acp_list_it_t it, acp_element_t elem, int rank);

/**
 * Inserts copies of the elements from `start` up to `end` before `it`. Returns the
 * iterator of the first of them.
 */
acp_list_it_t acp_insert_range_list(acp_list_it_t it,
                                    acp_list_it_t start,
                                    acp_list_it_t end);

/**
 * Moves all elements of `list2` into `list1`; if both lists are sorted by `comp`,
 * so is the result. `comp` returns a number below, equal to or above 0, and must
 * use neither list.
 */
void acp_merge_list(acp_list_t list1, acp_list_t list2, acp_list_comp_t comp);

/**
 * Removes the last element, if there is one.
 */
void acp_pop_back_list(acp_list_t list);

/**
 * Removes the first element, if there is one.
 */
void acp_pop_front_list(acp_list_t list);

/**
 * Appends a copy of `elem`, in memory of `rank`.
 */
void acp_push_back_list(acp_list_t list, acp_element_t elem, int rank);

/**
 * Inserts a copy of `elem` before the first element, in memory of `rank`.
 */
void acp_push_front_list(acp_list_t list, acp_element_t elem, int rank);

/**
 * Removes all elements that are equal to `elem`, byte by byte.
 */
void acp_remove_list(acp_list_t list, acp_element_t elem);

/**
 * Reverses the order of the elements.
 */
void acp_reverse_list(acp_list_t list);

/**
 * The number of elements.
 */
size_t acp_size_list(acp_list_t list);

/**
 * Sorts the elements by `comp`. The sort is stable.
 */
void acp_sort_list(acp_list_t list, acp_list_comp_t comp);

/**
 * Moves the element `it2` to before `it1`.
 */
void acp_splice_list(acp_list_it_t it1, acp_list_it_t it2);

/**
 * Moves the elements from `start` up to `end` to before `it`.
 */
void acp_splice_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end);

/**
 * Exchanges the contents of the two lists.
 */
void acp_swap_list(acp_list_t list1, acp_list_t list2);

/**
 * Removes each element that is equal, byte by byte, to the element before it.
 */
void acp_unique_list(acp_list_t list);

/**
 * The iterator `n` elements further, or back if `n` is negative; it does not pass
 * the end.
 */
acp_list_it_t acp_advance_list_it(acp_list_it_t it, int n);

/**
 * The iterator of the element before.
 */
acp_list_it_t acp_decrement_list_it(acp_list_it_t it);

/**
 * The bytes of an element; no bytes at the end.
 */
acp_element_t acp_dereference_list_it(acp_list_it_t it);

/**
 * The number of steps from `first` to `last`, or -1 if no number of steps leads
 * there.
 */
int acp_distance_list_it(acp_list_it_t first, acp_list_it_t last);

/**
 * The iterator of the next element.
 */
acp_list_it_t acp_increment_list_it(acp_list_it_t it);

/**
 * `set1` becomes a copy of the elements of `set2` that lie on this rank.
 */
void acp_assign_local_set(acp_set_t set1, acp_set_t set2);

/**
 * The iterator of the first of the elements on this rank, or the end.
 */
acp_set_it_t acp_begin_local_set(acp_set_t set);

/**
 * Returns 1 if no elements of the set lie on this rank, otherwise 0.
 */
int acp_empty_local_set(acp_set_t set);

/**
 * The iterator behind the last of the elements on this rank.
 */
acp_set_it_t acp_end_local_set(acp_set_t set);

/**
 * Inserts copies of those elements of `set2` on this rank into `set1` that have
 * keys which `set1` does not have.
 */
void acp_merge_local_set(acp_set_t set1, acp_set_t set2);

/**
 * Moves the elements of `set2` that lie on this rank into `set1`; afterwards
 * `set2` has none of them.
 */
void acp_move_local_set(acp_set_t set1, acp_set_t set2);

/**
 * The number of elements that lie on this rank.
 */
size_t acp_size_local_set(acp_set_t set);

/**
 * `set1` becomes a copy of the elements of `set2`.
 */
void acp_assign_set(acp_set_t set1, acp_set_t set2);

/**
 * The iterator of the first element, or the end.
 */
acp_set_it_t acp_begin_set(acp_set_t set);

/**
 * Removes all elements.
 */
void acp_clear_set(acp_set_t set);

/**
 * Returns 1 if the set has no elements, otherwise 0.
 */
int acp_empty_set(acp_set_t set);

/**
 * The iterator behind the last element.
 */
acp_set_it_t acp_end_set(acp_set_t set);

/**
 * Inserts copies of those elements of `set2` into `set1` that have keys which
 * `set1` does not have.
 */
void acp_merge_set(acp_set_t set1, acp_set_t set2);

/**
 * Moves the elements of `set2` into `set1`; afterwards `set2` has none of them.
 */
void acp_move_set(acp_set_t set1, acp_set_t set2);

/**
 * The number of elements.
 */
size_t acp_size_set(acp_set_t set);

/**
 * Makes an empty set with `num_slots` slots on each of `num_ranks` ranks, and its
 * header on `rank`. On failure the address of the set is `ACP_GA_NULL`.
 *
 * # Safety
 *
 * `ranks` is valid for a read of `num_ranks` numbers.
 */
acp_set_t acp_create_set(int num_ranks, const int *ranks, int num_slots, int rank);

/**
 * Frees all memory of the set. No rank may use it any more.
 */
void acp_destroy_set(acp_set_t set);

/**
 * The iterator of the element with this key, or the end.
 */
acp_set_it_t acp_find_set(acp_set_t set, acp_element_t key);

/**
 * Inserts a key. Returns 1 if the key was not there before, otherwise 0.
 */
int acp_insert_set(acp_set_t set, acp_element_t key);

/**
 * Removes a key, if it is there.
 */
void acp_remove_set(acp_set_t set, acp_element_t key);

/**
 * Exchanges the contents of the two sets.
 */
void acp_swap_set(acp_set_t set1, acp_set_t set2);

/**
 * The key of an element; no bytes at the end.
 */
acp_element_t acp_dereference_set_it(acp_set_it_t it);

/**
 * The iterator of the next element.
 */
acp_set_it_t acp_increment_set_it(acp_set_it_t it);

/**
 * `set1` becomes a copy of the elements of `set2` that lie on this rank.
 */
void acp_assign_local_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The iterator of the first of the elements on this rank, or the end.
 */
acp_multiset_it_t acp_begin_local_multiset(acp_multiset_t set);

/**
 * Returns 1 if no elements of the multiset lie on this rank, otherwise 0.
 */
int acp_empty_local_multiset(acp_multiset_t set);

/**
 * The iterator behind the last of the elements on this rank.
 */
acp_multiset_it_t acp_end_local_multiset(acp_multiset_t set);

/**
 * Inserts copies of the elements of `set2` that lie on this rank into `set1`, each
 * as many times as `set2` has it.
 */
void acp_merge_local_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * Moves the elements of `set2` that lie on this rank into `set1`; afterwards
 * `set2` has none of them.
 */
void acp_move_local_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The number of different keys that lie on this rank.
 */
size_t acp_size_local_multiset(acp_multiset_t set);

/**
 * `set1` becomes a copy of the elements of `set2`.
 */
void acp_assign_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The iterator of the first element, or the end.
 */
acp_multiset_it_t acp_begin_multiset(acp_multiset_t set);

/**
 * Removes all elements.
 */
void acp_clear_multiset(acp_multiset_t set);

/**
 * Returns 1 if the multiset has no elements, otherwise 0.
 */
int acp_empty_multiset(acp_multiset_t set);

/**
 * The iterator behind the last element.
 */
acp_multiset_it_t acp_end_multiset(acp_multiset_t set);

/**
 * Inserts copies of the elements of `set2` into `set1`, each as many times as
 * `set2` has it.
 */
void acp_merge_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * Moves the elements of `set2` into `set1`; afterwards `set2` has none of them.
 */
void acp_move_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The number of different keys.
 */
size_t acp_size_multiset(acp_multiset_t set);

/**
 * Makes an empty multiset with `num_slots` slots on each of `num_ranks` ranks, and
 * its header on `rank`. On failure the address of the multiset is `ACP_GA_NULL`.
 *
 * # Safety
 *
 * `ranks` is valid for a read of `num_ranks` numbers.
 */
acp_multiset_t acp_create_multiset(int num_ranks,
                                   const int *ranks,
                                   int num_slots,
                                   int rank);

/**
 * Frees all memory of the multiset. No rank may use it any more.
 */
void acp_destroy_multiset(acp_multiset_t set);

/**
 * The iterator of the element with this key, or the end.
 */
acp_multiset_it_t acp_find_multiset(acp_multiset_t set, acp_element_t key);

/**
 * Inserts a key one time more. Returns 1, or 0 on failure.
 */
int acp_insert_multiset(acp_multiset_t set, acp_element_t key);

/**
 * Removes all copies of a key.
 */
void acp_remove_all_multiset(acp_multiset_t set, acp_element_t key);

/**
 * The number of copies of a key.
 */
uint64_t acp_retrieve_multiset(acp_multiset_t set, acp_element_t key);

/**
 * Removes one copy of a key, if there is one.
 */
void acp_remove_multiset(acp_multiset_t set, acp_element_t key);

/**
 * Exchanges the contents of the two multisets.
 */
void acp_swap_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The key of an element; no bytes at the end.
 */
acp_element_t acp_dereference_multiset_it(acp_multiset_it_t it);

/**
 * The iterator of the next element.
 */
acp_multiset_it_t acp_increment_multiset_it(acp_multiset_it_t it);

/**
 * `map1` becomes a copy of the elements of `map2` that lie on this rank.
 */
void acp_assign_local_map(acp_map_t map1, acp_map_t map2);

/**
 * The iterator of the first of the elements on this rank, or the end.
 */
acp_map_it_t acp_begin_local_map(acp_map_t map);

/**
 * Removes all elements that lie on this rank.
 */
void acp_clear_local_map(acp_map_t map);

/**
 * Returns 1 if no elements of the map lie on this rank, otherwise 0.
 */
int acp_empty_local_map(acp_map_t map);

/**
 * The iterator behind the last of the elements on this rank.
 */
acp_map_it_t acp_end_local_map(acp_map_t map);

/**
 * Inserts copies of those elements of `map2` on this rank into `map1` that have
 * keys which `map1` does not have.
 */
void acp_merge_local_map(acp_map_t map1, acp_map_t map2);

/**
 * Moves the elements of `map2` that lie on this rank into `map1`; afterwards
 * `map2` has none of them.
 */
void acp_move_local_map(acp_map_t map1, acp_map_t map2);

/**
 * The number of elements that lie on this rank.
 */
size_t acp_size_local_map(acp_map_t map);

/**
 * `map1` becomes a copy of the elements of `map2`.
 */
void acp_assign_map(acp_map_t map1, acp_map_t map2);

/**
 * The iterator of the first element, or the end.
 */
acp_map_it_t acp_begin_map(acp_map_t map);

/**
 * Removes all elements.
 */
void acp_clear_map(acp_map_t map);

/**
 * Returns 1 if the map has no elements, otherwise 0.
 */
int acp_empty_map(acp_map_t map);

/**
 * The iterator behind the last element.
 */
acp_map_it_t acp_end_map(acp_map_t map);

/**
 * Inserts copies of those elements of `map2` into `map1` that have keys which
 * `map1` does not have.
 */
void acp_merge_map(acp_map_t map1, acp_map_t map2);

/**
 * Moves the elements of `map2` into `map1`; afterwards `map2` has none of them.
 */
void acp_move_map(acp_map_t map1, acp_map_t map2);

/**
 * The number of elements.
 */
size_t acp_size_map(acp_map_t map);

/**
 * Makes an empty map with `num_slots` slots on each of `num_ranks` ranks, and its
 * header on `rank`. On failure the address of the map is `ACP_GA_NULL`.
 *
 * # Safety
 *
 * `ranks` is valid for a read of `num_ranks` numbers.
 */
acp_map_t acp_create_map(int num_ranks, const int *ranks, int num_slots, int rank);

/**
 * Frees all memory of the map. No rank may use it any more.
 */
void acp_destroy_map(acp_map_t map);

/**
 * The iterator of the element with this key, or the end.
 */
acp_map_it_t acp_find_map(acp_map_t map, acp_element_t key);

/**
 * Inserts a key with its value. Returns 1 if the key was not there before,
 * otherwise 0, and the old value stays.
 */
int acp_insert_map(acp_map_t map, acp_pair_t pair);

/**
 * Copies the value of the key `pair.first` to the memory `pair.second`, as far as
 * there is room. Returns the number of bytes copied; 0 if the key is not there.
 */
size_t acp_retrieve_map(acp_map_t map, acp_pair_t pair);

/**
 * Removes a key, if it is there.
 */
void acp_remove_map(acp_map_t map, acp_element_t key);

/**
 * Exchanges the contents of the two maps.
 */
void acp_swap_map(acp_map_t map1, acp_map_t map2);

/**
 * The key and the value of an element; no bytes at the end.
 */
acp_pair_t acp_dereference_map_it(acp_map_it_t it);

/**
 * The iterator of the next element.
 */
acp_map_it_t acp_increment_map_it(acp_map_it_t it);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TSUMUGI_ACP_H */

/* A call on a container by the container's name: acp_size(vector, v). */
#define acp_assign(type, ...) acp_assign_##type(__VA_ARGS__)
#define acp_assign_local(type, ...) acp_assign_local_##type(__VA_ARGS__)
#define acp_assign_range(type, ...) acp_assign_range_##type(__VA_ARGS__)
#define acp_at(type, ...) acp_at_##type(__VA_ARGS__)
#define acp_begin(type, ...) acp_begin_##type(__VA_ARGS__)
#define acp_begin_local(type, ...) acp_begin_local_##type(__VA_ARGS__)
#define acp_capacity(type, ...) acp_capacity_##type(__VA_ARGS__)
#define acp_clear(type, ...) acp_clear_##type(__VA_ARGS__)
#define acp_clear_local(type, ...) acp_clear_local_##type(__VA_ARGS__)
#define acp_create(type, ...) acp_create_##type(__VA_ARGS__)
#define acp_destroy(type, ...) acp_destroy_##type(__VA_ARGS__)
#define acp_empty(type, ...) acp_empty_##type(__VA_ARGS__)
#define acp_empty_local(type, ...) acp_empty_local_##type(__VA_ARGS__)
#define acp_end(type, ...) acp_end_##type(__VA_ARGS__)
#define acp_end_local(type, ...) acp_end_local_##type(__VA_ARGS__)
#define acp_erase(type, ...) acp_erase_##type(__VA_ARGS__)
#define acp_erase_range(type, ...) acp_erase_range_##type(__VA_ARGS__)
#define acp_find(type, ...) acp_find_##type(__VA_ARGS__)
#define acp_insert(type, ...) acp_insert_##type(__VA_ARGS__)
#define acp_insert_range(type, ...) acp_insert_range_##type(__VA_ARGS__)
#define acp_merge(type, ...) acp_merge_##type(__VA_ARGS__)
#define acp_merge_local(type, ...) acp_merge_local_##type(__VA_ARGS__)
#define acp_move(type, ...) acp_move_##type(__VA_ARGS__)
#define acp_move_local(type, ...) acp_move_local_##type(__VA_ARGS__)
#define acp_pop_back(type, ...) acp_pop_back_##type(__VA_ARGS__)
#define acp_pop_front(type, ...) acp_pop_front_##type(__VA_ARGS__)
#define acp_push_back(type, ...) acp_push_back_##type(__VA_ARGS__)
#define acp_push_front(type, ...) acp_push_front_##type(__VA_ARGS__)
#define acp_remove(type, ...) acp_remove_##type(__VA_ARGS__)
#define acp_remove_all(type, ...) acp_remove_all_##type(__VA_ARGS__)
#define acp_reserve(type, ...) acp_reserve_##type(__VA_ARGS__)
#define acp_retrieve(type, ...) acp_retrieve_##type(__VA_ARGS__)
#define acp_reverse(type, ...) acp_reverse_##type(__VA_ARGS__)
#define acp_size(type, ...) acp_size_##type(__VA_ARGS__)
#define acp_size_local(type, ...) acp_size_local_##type(__VA_ARGS__)
#define acp_sort(type, ...) acp_sort_##type(__VA_ARGS__)
#define acp_splice(type, ...) acp_splice_##type(__VA_ARGS__)
#define acp_splice_range(type, ...) acp_splice_range_##type(__VA_ARGS__)
#define acp_swap(type, ...) acp_swap_##type(__VA_ARGS__)
#define acp_unique(type, ...) acp_unique_##type(__VA_ARGS__)
#define acp_advance(type, ...) acp_advance_##type(__VA_ARGS__)
#define acp_decrement(type, ...) acp_decrement_##type(__VA_ARGS__)
#define acp_dereference(type, ...) acp_dereference_##type(__VA_ARGS__)
#define acp_distance(type, ...) acp_distance_##type(__VA_ARGS__)
#define acp_increment(type, ...) acp_increment_##type(__VA_ARGS__)
