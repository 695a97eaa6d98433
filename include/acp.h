/* The Advanced Communication Primitives (ACP), on tsumugi. Made of src/capi/acp
 * by cbindgen; do not edit.
 *
 * Names and meaning are those of ACP 3. A call that fails answers what ACP says;
 * tsumugi_acp_error has the reason. Any thread may call, but for what all ranks
 * call together. Each call on a container is atomic against all others, but for
 * those of a set, multiset or map that go through all of it, which go from slot to
 * slot.
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
 * A send, a receive or a free that was begun.
 */
typedef struct chreqitem chreqitem;

/**
 * An end of a segmented buffer.
 */
typedef struct segbufitem segbufitem;

/**
 * A byte of any rank's memory; 0 is none. Bytes of one region follow each
 * other as numbers do.
 */
typedef uint64_t acp_ga_t;

/**
 * A region that this rank has registered; 0 is none.
 */
typedef uint64_t acp_atkey_t;

/**
 * A copy or an atomic that was begun; 0 is none.
 */
typedef int64_t acp_handle_t;

/**
 * An end of a channel; NULL is none.
 */
typedef chitem *acp_ch_t;

/**
 * What was begun on a channel, until it is waited for; NULL is none.
 */
typedef chreqitem *acp_request_t;

/**
 * An end of a segmented buffer; NULL is none.
 */
typedef segbufitem *acp_segbuf_t;

/**
 * A workspace; `ACP_WSD_NULL` is none.
 */
typedef acp_wsditem *acp_wsd_t;

/**
 * A vector of bytes.
 */
typedef struct {
  /**
   * Its header: the address of its bytes, their number, and how many there is room
   * for. `ACP_GA_NULL` is none.
   */
  acp_ga_t ga;
} acp_vector_t;

/**
 * A byte of a vector, or its end.
 */
typedef struct {
  /**
   * Of which.
   */
  acp_vector_t vector;
  /**
   * Which byte.
   */
  int index;
} acp_vector_it_t;

/**
 * A deque of bytes.
 */
typedef struct {
  /**
   * Its header: the address of its ring of bytes, where in the ring they begin,
   * their number, and how many there is room for. `ACP_GA_NULL` is none.
   */
  acp_ga_t ga;
} acp_deque_t;

/**
 * A byte of a deque, or its end.
 */
typedef struct {
  /**
   * Of which.
   */
  acp_deque_t deque;
  /**
   * Which byte.
   */
  int index;
} acp_deque_it_t;

/**
 * Bytes in global memory.
 */
typedef struct {
  /**
   * Where they begin.
   */
  acp_ga_t ga;
  /**
   * How many they are.
   */
  size_t size;
} acp_element_t;

/**
 * Two of them: a key and a value, or two pieces of a deque.
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
   * Its header; `ACP_GA_NULL` is none.
   */
  acp_ga_t ga;
} acp_list_t;

/**
 * An element of a list, or its end.
 */
typedef struct {
  /**
   * Of which.
   */
  acp_list_t list;
  /**
   * Which; `ACP_GA_NULL` after a failure.
   */
  acp_ga_t elem;
} acp_list_it_t;

/**
 * Which of two elements comes first: a number below, of or above 0.
 */
typedef int (*acp_list_comp_t)(acp_element_t elem1, acp_element_t elem2);

/**
 * A set.
 */
typedef struct {
  /**
   * Its directory, a word for each of its ranks; `ACP_GA_NULL` is none.
   */
  acp_ga_t ga;
  /**
   * How many ranks have slots.
   */
  uint64_t num_ranks;
  /**
   * How many slots each of them has.
   */
  uint64_t num_slots;
} acp_set_t;

/**
 * An element of a set, or its end.
 */
typedef struct {
  /**
   * Of which.
   */
  acp_set_t set;
  /**
   * On which of its ranks.
   */
  int rank;
  /**
   * In which slot.
   */
  int slot;
  /**
   * Which; `ACP_GA_NULL` at the end.
   */
  acp_ga_t elem;
} acp_set_it_t;

/**
 * A multiset.
 */
typedef struct {
  /**
   * Its directory, a word for each of its ranks; `ACP_GA_NULL` is none.
   */
  acp_ga_t ga;
  /**
   * How many ranks have slots.
   */
  uint64_t num_ranks;
  /**
   * How many slots each of them has.
   */
  uint64_t num_slots;
} acp_multiset_t;

/**
 * An element of a multiset, or its end.
 */
typedef struct {
  /**
   * Of which.
   */
  acp_multiset_t set;
  /**
   * On which of its ranks.
   */
  int rank;
  /**
   * In which slot.
   */
  int slot;
  /**
   * Which; `ACP_GA_NULL` at the end.
   */
  acp_ga_t elem;
} acp_multiset_it_t;

/**
 * A map.
 */
typedef struct {
  /**
   * Its directory, a word for each of its ranks; `ACP_GA_NULL` is none.
   */
  acp_ga_t ga;
  /**
   * How many ranks have slots.
   */
  uint64_t num_ranks;
  /**
   * How many slots each of them has.
   */
  uint64_t num_slots;
} acp_map_t;

/**
 * An element of a map, or its end.
 */
typedef struct {
  /**
   * Of which.
   */
  acp_map_t map;
  /**
   * On which of its ranks.
   */
  int rank;
  /**
   * In which slot.
   */
  int slot;
  /**
   * Which; `ACP_GA_NULL` at the end.
   */
  acp_ga_t elem;
} acp_map_it_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Prepares this process as a rank of its job; returns when all ranks have come
 * so far. Arguments that begin with `--acp-` are taken out of `argv`:
 * `--acp-size-smem N` (bytes of starter memory, 10,240 by default),
 * `--acp-size-smem-dl N` (bytes of each rank's heap for `acp_malloc`, 64 MiB at
 * least), `--acp-malloc-hook-small`, `-large`, `-huge`, `-low` and `-high N`
 * (`include/acp_malloc.c` says what they do); all others of ACP's are accepted
 * and change nothing. 0, or -1.
 *
 * # Safety
 *
 * `argc` and `argv` are main's, or NULL.
 */
int acp_init(int *argc, char ***argv);

/**
 * Ends what `acp_init` began; returns when all ranks have come so far. What was
 * not freed is; registered memory is the program's own again, and all other
 * threads of the process stand still meanwhile. 0, or -1.
 */
int acp_finalize(void);

/**
 * Begins anew with `rank` as this process's number: memory, channels and
 * handles are gone, starter memory is zero. All ranks call it, each with
 * another number. 0, or -1.
 */
int acp_reset(int rank);

/**
 * Says `str` and the reason of the last call that failed, and aborts the
 * process; the job ends.
 *
 * # Safety
 *
 * NULL or a C string.
 */
void acp_abort(const char *str);

/**
 * Not of ACP's interface, though programs of ACP's call it: ends the process
 * with a code that says that it failed; the job ends.
 */
void iacp_abort_cl(void);

/**
 * Waits until all ranks have called it. 0, or -1.
 */
int acp_sync(void);

/**
 * This process's rank, or -1.
 */
int acp_rank(void);

/**
 * How many ranks there are, or -1.
 */
int acp_procs(void);

/**
 * Not ACP's: why the last call of this thread that failed did so. Good until
 * the next one that fails.
 */
const char *tsumugi_acp_error(void);

/**
 * The first byte of `rank`'s starter memory, or `ACP_GA_NULL`.
 */
acp_ga_t acp_query_starter_ga(int rank);

/**
 * Lets all ranks reach the `size` bytes at `addr`, wherever in this process
 * they lie. Their pages are shared memory from then on; while they become so,
 * all other threads of the process stand still, for which they get a real-time
 * signal. A rank has room for 255 registrations at a time. `ACP_ATKEY_NULL` if
 * it cannot be.
 *
 * # Safety
 *
 * The memory is readable and writable, and stays so until it is unregistered.
 */
acp_atkey_t acp_register_memory(void *addr, size_t size, int color);

/**
 * Ends a registration, and waits until no rank reaches the memory by it any
 * more. 0, or -1.
 */
int acp_unregister_memory(acp_atkey_t atkey);

/**
 * The global address of a byte of a region, or `ACP_GA_NULL`.
 */
acp_ga_t acp_query_ga(acp_atkey_t atkey, void *addr);

/**
 * Where a byte of this rank's memory is in this process, or NULL.
 */
void *acp_query_address(acp_ga_t ga);

/**
 * The rank whose memory it is, or -1.
 */
int acp_query_rank(acp_ga_t ga);

/**
 * The colour of an address, which is 0, or -1.
 */
int acp_query_color(acp_ga_t ga);

/**
 * How many colours there are, which is 1, or -1.
 */
int acp_colors(void);

/**
 * Copies `size` bytes from `src` to `dst`, memory of any two ranks, when
 * `order` and all before it are complete. `ACP_HANDLE_NULL` if it cannot be, and
 * a line on standard error that says why.
 */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);

/**
 * Stores `newval` in the 4 bytes at `src` if `oldval` is there; what was there
 * goes to `dst`, memory of the caller's.
 */
acp_handle_t acp_cas4(acp_ga_t dst,
                      acp_ga_t src,
                      uint32_t oldval,
                      uint32_t newval,
                      acp_handle_t order);

/**
 * The same on 8 bytes.
 */
acp_handle_t acp_cas8(acp_ga_t dst,
                      acp_ga_t src,
                      uint64_t oldval,
                      uint64_t newval,
                      acp_handle_t order);

/**
 * Stores `value` in the 4 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Stores `value` in the 8 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Adds `value` to the 4 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Adds `value` to the 8 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Flips the bits of `value` in the 4 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Flips the bits of `value` in the 8 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Sets the bits of `value` in the 4 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Sets the bits of `value` in the 8 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Keeps the bits of `value` in the 4 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);

/**
 * Keeps the bits of `value` in the 8 bytes at `src`; what was there goes to
 * `dst`, memory of the caller's.
 */
acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/**
 * Waits until a copy or atomic and all before it are complete; with
 * `ACP_HANDLE_ALL` all that were begun.
 */
void acp_complete(acp_handle_t handle);

/**
 * 1 if one of these is not complete yet, otherwise 0.
 */
int acp_inquire(acp_handle_t handle);

/**
 * This rank's end of a channel from `sender` to `receiver`, or NULL. It waits
 * for nobody.
 */
acp_ch_t acp_create_ch(int sender, int receiver);

/**
 * Ends a channel, on which nothing is under way. 0, or -1.
 *
 * # Safety
 *
 * `ch` is NULL or an end of a channel.
 */
int acp_free_ch(acp_ch_t ch);

/**
 * The same, to be waited for.
 *
 * # Safety
 *
 * `ch` is NULL or an end of a channel.
 */
acp_request_t acp_nbfree_ch(acp_ch_t ch);

/**
 * Begins to send the `size` bytes at `buf`, which must not change before it was
 * waited for.
 *
 * # Safety
 *
 * `ch` is NULL or an end of a channel; `buf` is readable until then.
 */
acp_request_t acp_nbsend_ch(acp_ch_t ch, void *buf, size_t size);

/**
 * Begins to receive a message into the `size` bytes at `buf`; what has no room
 * there is lost.
 *
 * # Safety
 *
 * `ch` is NULL or an end of a channel; `buf` is writable, and nobody else
 * uses it, until it was waited for.
 */
acp_request_t acp_nbrecv_ch(acp_ch_t ch, void *buf, size_t size);

/**
 * Waits for what was begun; of a receive, how many bytes are in the buffer.
 * Otherwise 0, or `(size_t)-1`. The request is over.
 *
 * # Safety
 *
 * `request` is NULL or a request that was not waited for.
 */
size_t acp_wait_ch(acp_request_t request);

/**
 * Waits for `count` requests; what `acp_wait_ch` answers for each goes to
 * `sizes`, unless that is NULL. 0, or -1 if one failed.
 *
 * # Safety
 *
 * There are `count` requests, as for `acp_wait_ch`, and room for as many
 * sizes.
 */
int acp_waitall_ch(acp_request_t *request, int count, size_t *sizes);

/**
 * The end that sends to `dst_rank` the `segnum` segments of `segsize` bytes at
 * `buf`, or NULL.
 *
 * # Safety
 *
 * As of `acp_register_memory`, until it is freed.
 */
acp_segbuf_t acp_create_src_segbuf(int dst_rank,
                                   void *buf,
                                   size_t segsize,
                                   size_t segnum);

/**
 * The end that receives from `dst_rank`, which is the source's rank.
 *
 * # Safety
 *
 * As of `acp_register_memory`, until it is freed.
 */
acp_segbuf_t acp_create_dst_segbuf(int dst_rank,
                                   void *buf,
                                   size_t segsize,
                                   size_t segnum);

/**
 * Connects with the other end; waits for it. 0, or 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_connect_segbuf(acp_segbuf_t segbuf);

/**
 * 0 if it is connected, otherwise 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_isconnected_segbuf(acp_segbuf_t segbuf);

/**
 * At the sink: the first segment may be written over. 0, or 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_ready_segbuf(acp_segbuf_t segbuf);

/**
 * At the source: sends the next segment. 0, or 1 if there is no room for it.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_ack_segbuf(acp_segbuf_t segbuf);

/**
 * 0 if there is a segment that the source may write and send, otherwise 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_isready_segbuf(acp_segbuf_t segbuf);

/**
 * 0 if there is a segment that the sink may read, otherwise 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_isacked_segbuf(acp_segbuf_t segbuf);

/**
 * Segments that the sink has given back, or -1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int64_t acp_query_segbuf_head(acp_segbuf_t segbuf);

/**
 * Segments that the source has sent, or -1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int64_t acp_query_segbuf_tail(acp_segbuf_t segbuf);

/**
 * At the source: segments whose bytes are at the sink, so that they may be
 * written anew. Or -1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int64_t acp_query_segbuf_sent(acp_segbuf_t segbuf);

/**
 * Ends the connection, when the other end does; waits for it. 0, or 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end.
 */
int acp_disconnect_segbuf(acp_segbuf_t segbuf);

/**
 * Frees an end that is not connected. 0, or 1.
 *
 * # Safety
 *
 * `segbuf` is NULL or an end, which is over.
 */
int acp_free_segbuf(acp_segbuf_t segbuf);

/**
 * Makes a workspace of `size` bytes, zero at first, on the ranks that
 * `acp_setparams_ws` says. All ranks call it. Or `ACP_WSD_NULL`.
 */
acp_wsd_t acp_create_ws(size_t size);

/**
 * Where the next workspace begins, and how many bytes of it each rank has; the
 * same on all ranks. By default 0 and 1 MiB. Each workspace begins behind the
 * one before. 0, or 1.
 */
int acp_setparams_ws(size_t proc_start, size_t size_default);

/**
 * Ends a workspace, which nobody uses any more. All ranks call it.
 *
 * # Safety
 *
 * `WSD` is `ACP_WSD_NULL` or a workspace.
 */
void acp_destroy_ws(acp_wsd_t WSD);

/**
 * Copies `size` bytes of a workspace, from `offset` on, to `ga`. 0, or 1.
 *
 * # Safety
 *
 * `WSD` is a workspace.
 */
int acp_read_ws(acp_wsd_t WSD, acp_ga_t ga, size_t size, size_t offset);

/**
 * Copies `size` bytes from `ga` to a workspace, from `offset` on. 0, or 1.
 *
 * # Safety
 *
 * `WSD` is a workspace.
 */
int acp_write_ws(acp_wsd_t WSD, acp_ga_t ga, size_t size, size_t offset);

/**
 * Takes `size` bytes of `rank`'s heap, or answers `ACP_GA_NULL`. Lock-free.
 */
acp_ga_t acp_malloc(size_t size, int rank);

/**
 * Gives back what `acp_malloc` gave to whichever rank; `ACP_GA_NULL` is no
 * harm. Lock-free.
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
 * Where a byte is, or `ACP_GA_NULL` if there is none.
 */
acp_ga_t acp_at_vector(acp_vector_t vector, int index);

/**
 * The first byte.
 */
acp_vector_it_t acp_begin_vector(acp_vector_t vector);

/**
 * How many bytes there is room for.
 */
size_t acp_capacity_vector(acp_vector_t vector);

/**
 * Takes all bytes out.
 */
void acp_clear_vector(acp_vector_t vector);

/**
 * Makes one of `size` bytes, on `rank`; its address is `ACP_GA_NULL` if that
 * could not be.
 */
acp_vector_t acp_create_vector(size_t size, int rank);

/**
 * Gives its memory back. Nobody uses it any more.
 */
void acp_destroy_vector(acp_vector_t vector);

/**
 * 1 if it has no bytes, otherwise 0.
 */
int acp_empty_vector(acp_vector_t vector);

/**
 * Behind the last byte.
 */
acp_vector_it_t acp_end_vector(acp_vector_t vector);

/**
 * Takes `size` bytes out; what followed them.
 */
acp_vector_it_t acp_erase_vector(acp_vector_it_t it, size_t size);

/**
 * Takes the bytes from `start` up to `end` out; what followed them.
 */
acp_vector_it_t acp_erase_range_vector(acp_vector_it_t start, acp_vector_it_t end);

/**
 * Puts the `size` bytes at `ga` in before `it`; the first of them.
 */
acp_vector_it_t acp_insert_vector(acp_vector_it_t it, acp_ga_t ga, size_t size);

/**
 * Puts copies of the bytes from `start` up to `end` in before `it`; the first
 * of them.
 */
acp_vector_it_t acp_insert_range_vector(acp_vector_it_t it,
                                        acp_vector_it_t start,
                                        acp_vector_it_t end);

/**
 * Takes the last `size` bytes out.
 */
void acp_pop_back_vector(acp_vector_t vector, size_t size);

/**
 * Puts the `size` bytes at `ga` in behind the last.
 */
void acp_push_back_vector(acp_vector_t vector, acp_ga_t ga, size_t size);

/**
 * Makes room for `size` bytes in all.
 */
void acp_reserve_vector(acp_vector_t vector, size_t size);

/**
 * How many bytes it has.
 */
size_t acp_size_vector(acp_vector_t vector);

/**
 * The two change places.
 */
void acp_swap_vector(acp_vector_t vector1, acp_vector_t vector2);

/**
 * `n` bytes on, or back.
 */
acp_vector_it_t acp_advance_vector_it(acp_vector_it_t it, int n);

/**
 * Where the byte is, or `ACP_GA_NULL` if there is none.
 */
acp_ga_t acp_dereference_vector_it(acp_vector_it_t it);

/**
 * Bytes from `first` to `last`.
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
 * Where a byte is, or `ACP_GA_NULL` if there is none.
 */
acp_ga_t acp_at_deque(acp_deque_t deque, int index);

/**
 * The first byte.
 */
acp_deque_it_t acp_begin_deque(acp_deque_t deque);

/**
 * How many bytes there is room for.
 */
size_t acp_capacity_deque(acp_deque_t deque);

/**
 * Takes all bytes out.
 */
void acp_clear_deque(acp_deque_t deque);

/**
 * Makes an empty one with room for `size` bytes, on `rank`; its address is
 * `ACP_GA_NULL` if that could not be.
 */
acp_deque_t acp_create_deque(size_t size, int rank);

/**
 * Gives its memory back. Nobody uses it any more.
 */
void acp_destroy_deque(acp_deque_t deque);

/**
 * 1 if it has no bytes, otherwise 0.
 */
int acp_empty_deque(acp_deque_t deque);

/**
 * Behind the last byte.
 */
acp_deque_it_t acp_end_deque(acp_deque_t deque);

/**
 * Takes `size` bytes out; what followed them.
 */
acp_deque_it_t acp_erase_deque(acp_deque_it_t it, size_t size);

/**
 * Takes the bytes from `start` up to `end` out; what followed them.
 */
acp_deque_it_t acp_erase_range_deque(acp_deque_it_t start, acp_deque_it_t end);

/**
 * Puts the `size` bytes at `ga` in before `it`; the first of them.
 */
acp_deque_it_t acp_insert_deque(acp_deque_it_t it, acp_ga_t ga, size_t size);

/**
 * Puts copies of the bytes from `start` up to `end` in before `it`; the first
 * of them.
 */
acp_deque_it_t acp_insert_range_deque(acp_deque_it_t it,
                                      acp_deque_it_t start,
                                      acp_deque_it_t end);

/**
 * Takes the last `size` bytes out.
 */
void acp_pop_back_deque(acp_deque_t deque, size_t size);

/**
 * Takes the first `size` bytes out.
 */
void acp_pop_front_deque(acp_deque_t deque, size_t size);

/**
 * Puts the `size` bytes at `ga` in behind the last.
 */
void acp_push_back_deque(acp_deque_t deque, acp_ga_t ga, size_t size);

/**
 * Puts the `size` bytes at `ga` in before the first.
 */
void acp_push_front_deque(acp_deque_t deque, acp_ga_t ga, size_t size);

/**
 * Makes room for `size` bytes in all.
 */
void acp_reserve_deque(acp_deque_t deque, size_t size);

/**
 * How many bytes it has.
 */
size_t acp_size_deque(acp_deque_t deque);

/**
 * The two change places. Neither has more room than it needs after that.
 */
void acp_swap_deque(acp_deque_t deque1, acp_deque_t deque2);

/**
 * `n` bytes on, or back.
 */
acp_deque_it_t acp_advance_deque_it(acp_deque_it_t it, int n);

/**
 * Where the `size` bytes from `it` on are, as far as there are any: in one
 * piece, or in two.
 */
acp_pair_t acp_dereference_deque_it(acp_deque_it_t it, size_t size);

/**
 * Bytes from `first` to `last`.
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
 * The first element, or the end.
 */
acp_list_it_t acp_begin_list(acp_list_t list);

/**
 * Takes all elements out.
 */
void acp_clear_list(acp_list_t list);

/**
 * Makes an empty list, whose header is on `rank`; its address is
 * `ACP_GA_NULL` if that could not be.
 */
acp_list_t acp_create_list(int rank);

/**
 * Gives all of its memory back. Nobody uses it any more.
 */
void acp_destroy_list(acp_list_t list);

/**
 * 1 if it has no elements, otherwise 0.
 */
int acp_empty_list(acp_list_t list);

/**
 * Behind the last element.
 */
acp_list_it_t acp_end_list(acp_list_t list);

/**
 * Takes an element out; what followed it.
 */
acp_list_it_t acp_erase_list(acp_list_it_t it);

/**
 * Takes the elements from `start` up to `end` out; what followed them.
 */
acp_list_it_t acp_erase_range_list(acp_list_it_t start, acp_list_it_t end);

/**
 * Puts a copy of `elem` in before `it`, in `rank`'s memory; its iterator.
 */
acp_list_it_t acp_insert_list(acp_list_it_t it, acp_element_t elem, int rank);

/**
 * Puts copies of the elements from `start` up to `end` in before `it`; the
 * first of them.
 */
acp_list_it_t acp_insert_range_list(acp_list_it_t it,
                                    acp_list_it_t start,
                                    acp_list_it_t end);

/**
 * Takes over all elements of `list2`; if both are in the order of `comp`, it is,
 * too. `comp` answers a number below, of or above 0, and uses neither list.
 */
void acp_merge_list(acp_list_t list1, acp_list_t list2, acp_list_comp_t comp);

/**
 * Takes the last element out, if there is one.
 */
void acp_pop_back_list(acp_list_t list);

/**
 * Takes the first element out, if there is one.
 */
void acp_pop_front_list(acp_list_t list);

/**
 * Puts a copy of `elem` in behind the last, in `rank`'s memory.
 */
void acp_push_back_list(acp_list_t list, acp_element_t elem, int rank);

/**
 * Puts a copy of `elem` in before the first, in `rank`'s memory.
 */
void acp_push_front_list(acp_list_t list, acp_element_t elem, int rank);

/**
 * Takes out all elements that are the bytes of `elem`.
 */
void acp_remove_list(acp_list_t list, acp_element_t elem);

/**
 * Turns the order round.
 */
void acp_reverse_list(acp_list_t list);

/**
 * How many elements it has.
 */
size_t acp_size_list(acp_list_t list);

/**
 * Puts the elements in the order of `comp`; those that are equal keep theirs.
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
 * The two change places.
 */
void acp_swap_list(acp_list_t list1, acp_list_t list2);

/**
 * Takes out all elements that are the bytes of the one before.
 */
void acp_unique_list(acp_list_t list);

/**
 * `n` elements on, or back; the end is not passed.
 */
acp_list_it_t acp_advance_list_it(acp_list_it_t it, int n);

/**
 * The element before.
 */
acp_list_it_t acp_decrement_list_it(acp_list_it_t it);

/**
 * The bytes of an element; none at the end.
 */
acp_element_t acp_dereference_list_it(acp_list_it_t it);

/**
 * Steps from `first` to `last`, or -1 if that never comes.
 */
int acp_distance_list_it(acp_list_it_t first, acp_list_it_t last);

/**
 * The element behind.
 */
acp_list_it_t acp_increment_list_it(acp_list_it_t it);

/**
 * `set1` becomes a copy of the elements of `set2` that lie on this rank.
 */
void acp_assign_local_set(acp_set_t set1, acp_set_t set2);

/**
 * The first of the elements that lie on this rank, or the end.
 */
acp_set_it_t acp_begin_local_set(acp_set_t set);

/**
 * 1 if there are no elements that lie on this rank, otherwise 0.
 */
int acp_empty_local_set(acp_set_t set);

/**
 * Behind the last of the elements that lie on this rank.
 */
acp_set_it_t acp_end_local_set(acp_set_t set);

/**
 * Copies of the elements of `set2` that lie on this rank come into `set1`, where
 * its keys are not.
 */
void acp_merge_local_set(acp_set_t set1, acp_set_t set2);

/**
 * The elements of `set2` that lie on this rank come into `set1`, and `set2` has
 * none of them any more.
 */
void acp_move_local_set(acp_set_t set1, acp_set_t set2);

/**
 * How many elements that lie on this rank there are.
 */
size_t acp_size_local_set(acp_set_t set);

/**
 * `set1` becomes a copy of the elements of `set2`.
 */
void acp_assign_set(acp_set_t set1, acp_set_t set2);

/**
 * The first of the elements, or the end.
 */
acp_set_it_t acp_begin_set(acp_set_t set);

/**
 * Takes all elements out.
 */
void acp_clear_set(acp_set_t set);

/**
 * 1 if there are no elements, otherwise 0.
 */
int acp_empty_set(acp_set_t set);

/**
 * Behind the last of the elements.
 */
acp_set_it_t acp_end_set(acp_set_t set);

/**
 * Copies of the elements of `set2` come into `set1`, where
 * its keys are not.
 */
void acp_merge_set(acp_set_t set1, acp_set_t set2);

/**
 * The elements of `set2` come into `set1`, and `set2` has
 * none of them any more.
 */
void acp_move_set(acp_set_t set1, acp_set_t set2);

/**
 * How many elements there are.
 */
size_t acp_size_set(acp_set_t set);

/**
 * Makes an empty one with `num_slots` slots on each of `num_ranks` ranks, its
 * header on `rank`; its address is `ACP_GA_NULL` if that could not be.
 *
 * # Safety
 *
 * There are `num_ranks` ranks at `ranks`.
 */
acp_set_t acp_create_set(int num_ranks, const int *ranks, int num_slots, int rank);

/**
 * Gives all of its memory back. Nobody uses it any more.
 */
void acp_destroy_set(acp_set_t set);

/**
 * The element of a key, or the end.
 */
acp_set_it_t acp_find_set(acp_set_t set, acp_element_t key);

/**
 * Puts a key in. 1 if it was not there, otherwise 0.
 */
int acp_insert_set(acp_set_t set, acp_element_t key);

/**
 * Takes a key out, if it is there.
 */
void acp_remove_set(acp_set_t set, acp_element_t key);

/**
 * The two change places.
 */
void acp_swap_set(acp_set_t set1, acp_set_t set2);

/**
 * The key of an element; none at the end.
 */
acp_element_t acp_dereference_set_it(acp_set_it_t it);

/**
 * The element behind.
 */
acp_set_it_t acp_increment_set_it(acp_set_it_t it);

/**
 * `set1` becomes a copy of the elements of `set2` that lie on this rank.
 */
void acp_assign_local_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The first of the elements that lie on this rank, or the end.
 */
acp_multiset_it_t acp_begin_local_multiset(acp_multiset_t set);

/**
 * 1 if there are no elements that lie on this rank, otherwise 0.
 */
int acp_empty_local_multiset(acp_multiset_t set);

/**
 * Behind the last of the elements that lie on this rank.
 */
acp_multiset_it_t acp_end_local_multiset(acp_multiset_t set);

/**
 * Copies of the elements of `set2` that lie on this rank come into `set1`, as often as they
 * are there.
 */
void acp_merge_local_multiset(acp_multiset_t set1,
                              acp_multiset_t set2);

/**
 * The elements of `set2` that lie on this rank come into `set1`, and `set2` has
 * none of them any more.
 */
void acp_move_local_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * How many elements that lie on this rank there are, a key once.
 */
size_t acp_size_local_multiset(acp_multiset_t set);

/**
 * `set1` becomes a copy of the elements of `set2`.
 */
void acp_assign_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The first of the elements, or the end.
 */
acp_multiset_it_t acp_begin_multiset(acp_multiset_t set);

/**
 * Takes all elements out.
 */
void acp_clear_multiset(acp_multiset_t set);

/**
 * 1 if there are no elements, otherwise 0.
 */
int acp_empty_multiset(acp_multiset_t set);

/**
 * Behind the last of the elements.
 */
acp_multiset_it_t acp_end_multiset(acp_multiset_t set);

/**
 * Copies of the elements of `set2` come into `set1`, as often as they
 * are there.
 */
void acp_merge_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The elements of `set2` come into `set1`, and `set2` has
 * none of them any more.
 */
void acp_move_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * How many elements there are, a key once.
 */
size_t acp_size_multiset(acp_multiset_t set);

/**
 * Makes an empty one with `num_slots` slots on each of `num_ranks` ranks, its
 * header on `rank`; its address is `ACP_GA_NULL` if that could not be.
 *
 * # Safety
 *
 * There are `num_ranks` ranks at `ranks`.
 */
acp_multiset_t acp_create_multiset(int num_ranks,
                                   const int *ranks,
                                   int num_slots,
                                   int rank);

/**
 * Gives all of its memory back. Nobody uses it any more.
 */
void acp_destroy_multiset(acp_multiset_t set);

/**
 * The element of a key, or the end.
 */
acp_multiset_it_t acp_find_multiset(acp_multiset_t set, acp_element_t key);

/**
 * Puts a key in one time more. 1, or 0 if that could not be.
 */
int acp_insert_multiset(acp_multiset_t set, acp_element_t key);

/**
 * Takes a key out as often as it is there.
 */
void acp_remove_all_multiset(acp_multiset_t set, acp_element_t key);

/**
 * How many times a key is there.
 */
uint64_t acp_retrieve_multiset(acp_multiset_t set, acp_element_t key);

/**
 * Takes a key out one time, if it is there.
 */
void acp_remove_multiset(acp_multiset_t set, acp_element_t key);

/**
 * The two change places.
 */
void acp_swap_multiset(acp_multiset_t set1, acp_multiset_t set2);

/**
 * The key of an element; none at the end.
 */
acp_element_t acp_dereference_multiset_it(acp_multiset_it_t it);

/**
 * The element behind.
 */
acp_multiset_it_t acp_increment_multiset_it(acp_multiset_it_t it);

/**
 * `map1` becomes a copy of the elements of `map2` that lie on this rank.
 */
void acp_assign_local_map(acp_map_t map1, acp_map_t map2);

/**
 * The first of the elements that lie on this rank, or the end.
 */
acp_map_it_t acp_begin_local_map(acp_map_t map);

/**
 * Takes all elements that lie on this rank out.
 */
void acp_clear_local_map(acp_map_t map);

/**
 * 1 if there are no elements that lie on this rank, otherwise 0.
 */
int acp_empty_local_map(acp_map_t map);

/**
 * Behind the last of the elements that lie on this rank.
 */
acp_map_it_t acp_end_local_map(acp_map_t map);

/**
 * Copies of the elements of `map2` that lie on this rank come into `map1`, where
 * its keys are not.
 */
void acp_merge_local_map(acp_map_t map1, acp_map_t map2);

/**
 * The elements of `map2` that lie on this rank come into `map1`, and `map2` has
 * none of them any more.
 */
void acp_move_local_map(acp_map_t map1, acp_map_t map2);

/**
 * How many elements that lie on this rank there are.
 */
size_t acp_size_local_map(acp_map_t map);

/**
 * `map1` becomes a copy of the elements of `map2`.
 */
void acp_assign_map(acp_map_t map1, acp_map_t map2);

/**
 * The first of the elements, or the end.
 */
acp_map_it_t acp_begin_map(acp_map_t map);

/**
 * Takes all elements out.
 */
void acp_clear_map(acp_map_t map);

/**
 * 1 if there are no elements, otherwise 0.
 */
int acp_empty_map(acp_map_t map);

/**
 * Behind the last of the elements.
 */
acp_map_it_t acp_end_map(acp_map_t map);

/**
 * Copies of the elements of `map2` come into `map1`, where
 * its keys are not.
 */
void acp_merge_map(acp_map_t map1, acp_map_t map2);

/**
 * The elements of `map2` come into `map1`, and `map2` has
 * none of them any more.
 */
void acp_move_map(acp_map_t map1, acp_map_t map2);

/**
 * How many elements there are.
 */
size_t acp_size_map(acp_map_t map);

/**
 * Makes an empty one with `num_slots` slots on each of `num_ranks` ranks, its
 * header on `rank`; its address is `ACP_GA_NULL` if that could not be.
 *
 * # Safety
 *
 * There are `num_ranks` ranks at `ranks`.
 */
acp_map_t acp_create_map(int num_ranks, const int *ranks, int num_slots, int rank);

/**
 * Gives all of its memory back. Nobody uses it any more.
 */
void acp_destroy_map(acp_map_t map);

/**
 * The element of a key, or the end.
 */
acp_map_it_t acp_find_map(acp_map_t map, acp_element_t key);

/**
 * Puts a key in with its value. 1 if it was not there, otherwise 0, and the
 * value that is there stays.
 */
int acp_insert_map(acp_map_t map, acp_pair_t pair);

/**
 * Copies the value of the first to the second, as far as that has room. How
 * many bytes were copied; 0 if the key is not there.
 */
size_t acp_retrieve_map(acp_map_t map, acp_pair_t pair);

/**
 * Takes a key out, if it is there.
 */
void acp_remove_map(acp_map_t map, acp_element_t key);

/**
 * The two change places.
 */
void acp_swap_map(acp_map_t map1, acp_map_t map2);

/**
 * The key and the value of an element; none at the end.
 */
acp_pair_t acp_dereference_map_it(acp_map_it_t it);

/**
 * The element behind.
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
