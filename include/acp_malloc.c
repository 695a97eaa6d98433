/* The malloc hook of ACP: a library that is loaded before a program's own, and
 * takes what the program asks of malloc, calloc and realloc from the heap of its
 * rank, where other ranks reach it without a registration.
 *
 *   cc -shared -fPIC -O2 -o libacp_malloc.so include/acp_malloc.c
 *   LD_PRELOAD=$PWD/libacp_malloc.so program --acp-malloc-hook-large 1
 *
 *   --acp-malloc-hook-small N   1: blocks of less than LOW bytes
 *   --acp-malloc-hook-large N   1: blocks of LOW to HIGH bytes
 *   --acp-malloc-hook-huge N    1: blocks of HIGH bytes and more
 *   --acp-malloc-hook-low N     LOW, 128 by default
 *   --acp-malloc-hook-high N    HIGH, 131,072 by default
 *
 * Between acp_init and acp_finalize, that is. Only what the program itself
 * calls: what libraries allocate stays where it was, since they may keep it for
 * longer. So the program is linked with the shared library of tsumugi; in one
 * that has it inside, nothing is hooked. What the heap has no room for comes from
 * the system. Blocks are gone when the job ends: to free one later does nothing.
 * It stands on glibc.
 *
 *   block   ┌ raw │ size ┐ the program's bytes ...
 *           16 bytes before what the program has, which is aligned as malloc's
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

/* What the runtime tells, and what it is to be asked: as in acp/src/hook.rs. */
struct acp_malloc_terms {
    int small, large, huge;
    uint64_t low, high;
    uintptr_t base, bytes;
    void *(*take)(size_t);
    void (*give)(void *);
};

struct head {
    void *raw;
    size_t size;
};

struct range {
    uintptr_t from, to;
};

enum { HEAPS = 64, ALIGN = 16 };

static struct acp_malloc_terms terms;
static atomic_int is_on;
/* Where heaps are, and were; the last is the one that is in use. */
static struct range heaps[HEAPS];
static atomic_int heap_count;
static struct range program;
static _Thread_local int is_inside;

static int is_in(struct range range, const void *at)
{
    return range.from <= (uintptr_t)at && (uintptr_t)at < range.to;
}

/* The first object is the program. */
static int find_program(struct dl_phdr_info *info, size_t size, void *none)
{
    (void)size;
    (void)none;
    program = (struct range){UINTPTR_MAX, 0};
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[at];
        uintptr_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        if (from < program.from)
            program.from = from;
        if (from + part->p_memsz > program.to)
            program.to = from + part->p_memsz;
    }
    return 1;
}

/* Called by acp_init and acp_reset; no other thread of the program runs. */
void tsumugi_acp_malloc_begin(const struct acp_malloc_terms *told)
{
    int at = atomic_load(&heap_count);
    dl_iterate_phdr(find_program, NULL);
    if (at == HEAPS || is_in(program, (void *)told->take))
        return;
    terms = *told;
    heaps[at] = (struct range){told->base, told->base + told->bytes};
    atomic_store(&heap_count, at + 1);
    atomic_store(&is_on, 1);
}

/* Called when the heap goes. */
void tsumugi_acp_malloc_end(void)
{
    atomic_store(&is_on, 0);
}

/* From the rank's heap, if that is wanted and it has room. */
static void *take(size_t size, const void *caller)
{
    struct head *head;
    void *raw;
    if (!atomic_load_explicit(&is_on, memory_order_acquire) || is_inside || size == 0 ||
        !is_in(program, caller) || size > SIZE_MAX - 4 * ALIGN)
        return NULL;
    if (size < terms.low ? !terms.small : size < terms.high ? !terms.large : !terms.huge)
        return NULL;
    is_inside = 1;
    raw = terms.take(size + 2 * ALIGN);
    is_inside = 0;
    if (!raw)
        return NULL;
    head = (struct head *)(((uintptr_t)raw + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    *head = (struct head){raw, size};
    return head + 1;
}

/* Whether a block is, or was, of a heap. */
static int is_ours(const void *at)
{
    for (int heap = atomic_load_explicit(&heap_count, memory_order_acquire); heap-- > 0;)
        if (is_in(heaps[heap], at))
            return heap + 1;
    return 0;
}

static void give(void *at, int heap)
{
    if (!atomic_load(&is_on) || heap != atomic_load(&heap_count))
        return;
    is_inside = 1;
    terms.give(((struct head *)at - 1)->raw);
    is_inside = 0;
}

void *malloc(size_t size)
{
    void *at = take(size, __builtin_return_address(0));
    return at ? at : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *at = __builtin_mul_overflow(count, size, &bytes)
                   ? NULL
                   : take(bytes, __builtin_return_address(0));
    return at ? memset(at, 0, bytes) : __libc_calloc(count, size);
}

void free(void *at)
{
    int heap = at ? is_ours(at) : 0;
    if (heap)
        give(at, heap);
    else
        __libc_free(at);
}

void *realloc(void *at, size_t size)
{
    int heap = at ? is_ours(at) : 0;
    size_t before;
    void *next;
    if (!at) {
        next = take(size, __builtin_return_address(0));
        return next ? next : __libc_malloc(size);
    }
    if (!heap)
        return __libc_realloc(at, size);
    /* One that is gone has no bytes to copy. */
    before = atomic_load(&is_on) && heap == atomic_load(&heap_count)
                 ? ((struct head *)at - 1)->size
                 : 0;
    if (size != 0 && size <= before)
        return at;
    next = take(size, __builtin_return_address(0));
    if (!next)
        next = __libc_malloc(size);
    if (next) {
        memcpy(next, at, before < size ? before : size);
        give(at, heap);
    }
    return next;
}
