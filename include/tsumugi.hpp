// tsumugi in C++17: the interface of tsumugi.h with objects that end what they own. This
// header needs the library and nothing else; functions that are not here are called from
// tsumugi.h, with the `get()` of an object.
//
// Errors: a call that fails throws tsumugi::error, a std::system_error whose code is the
// TSUMUGI_ERROR_* of the call and whose text has the reason. No destructor throws: a
// destructor that cannot end its object as it should calls std::terminate. An exception
// that leaves the function of a ULT is thrown again by the join. An object that was moved
// from owns nothing.
//
// Suspension: the rules of tsumugi.h hold. A call that blocks may continue on another OS
// thread; no exception may be in flight then: do not call what blocks in a `catch` block
// or in a destructor that runs while a ULT's stack unwinds.
#ifndef TSUMUGI_HPP
#define TSUMUGI_HPP

#include <tsumugi.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace tsumugi {

// The category of TSUMUGI_ERROR_* codes.
inline const std::error_category &category() noexcept
{
    struct errors final : std::error_category {
        const char *name() const noexcept override { return "tsumugi"; }
        std::string message(int code) const override { return tsumugi_error_text(code); }
    };
    static const errors all;
    return all;
}

// A call that has failed.
class error : public std::system_error {
public:
    explicit error(int code, const std::string &reason = tsumugi_reason())
        : std::system_error(code, category(), reason)
    {
    }
};

// Throws if a code is one of an error.
inline void check(int code)
{
    if (code != TSUMUGI_OK) throw error(code);
}

namespace detail {

// Owns a C object, which `End` ends.
template <class T, void (*End)(T *) noexcept> struct deleter {
    void operator()(T *object) const noexcept { End(object); }
};
template <class T, void (*End)(T *) noexcept>
using owned = std::unique_ptr<T, deleter<T, End>>;

inline void must(int code) noexcept
{
    if (code != TSUMUGI_OK) std::terminate();
}

// A function of a ULT, and what became of it.
template <class F> struct call {
    F function;
    std::exception_ptr thrown;

    static void *run(void *argument) noexcept
    {
        auto *self = static_cast<call *>(argument);
        try {
            self->function();
        } catch (...) {
            self->thrown = std::current_exception();
        }
        return nullptr;
    }
};

inline std::uint64_t limit_of(std::chrono::nanoseconds limit) noexcept
{
    return limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count());
}

template <class T> constexpr bool is_plain = std::is_trivially_copyable_v<T>;
template <class T>
constexpr bool is_word = std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

} // namespace detail

// ---- threads ------------------------------------------------------------------------

// A user-level thread, which is joined when this ends, as a std::jthread is.
class ult {
public:
    ult() noexcept = default;

    // Begins to run `function` on the caller's scheduler, or on `scheduler`.
    template <class F, class = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &>>>
    explicit ult(F &&function, const struct tsumugi_scheduler *scheduler = nullptr,
                 const struct tsumugi_particulars *particulars = nullptr)
    {
        using call = detail::call<std::decay_t<F>>;
        auto made = std::make_shared<call>(call{std::forward<F>(function), nullptr});
        check(tsumugi_spawn(scheduler, particulars, call::run, made.get(), &handle_));
        thrown_ = &made->thrown;
        call_ = std::move(made);
    }

    ult(ult &&other) noexcept { swap(other); }
    ult &operator=(ult &&other) noexcept
    {
        ult ended(std::move(other));
        swap(ended);
        return *this;
    }
    ~ult()
    {
        if (joinable()) detail::must(tsumugi_join(handle_, nullptr));
    }

    // Waits until the function has returned; throws what it has thrown. Blocks.
    void join()
    {
        check(tsumugi_join(std::exchange(handle_, nullptr), nullptr));
        auto call = std::move(call_);
        if (*thrown_) std::rethrow_exception(*thrown_);
    }

    void cancel() { check(tsumugi_cancel(handle_)); }
    bool joinable() const noexcept { return handle_ != nullptr; }
    bool is_finished() const noexcept { return joinable() && tsumugi_is_finished(handle_); }
    struct tsumugi_ult *get() const noexcept { return handle_; }
    void swap(ult &other) noexcept
    {
        std::swap(handle_, other.handle_);
        std::swap(thrown_, other.thrown_);
        std::swap(call_, other.call_);
    }

private:
    struct tsumugi_ult *handle_ = nullptr;
    std::exception_ptr *thrown_ = nullptr;
    std::shared_ptr<void> call_;
};

// Workers that run ULTs.
class scheduler {
public:
    // With `config`, or as many workers as the process has cores.
    explicit scheduler(const struct tsumugi_config *config = nullptr)
    {
        struct tsumugi_scheduler *made = nullptr;
        check(tsumugi_scheduler_create(config, &made));
        scheduler_.reset(made);
    }

    // Runs `main` on a ULT, with the calling thread as a worker; throws what it throws.
    template <class F> void run(F &&main)
    {
        using call = detail::call<std::decay_t<F>>;
        call made{std::forward<F>(main), nullptr};
        check(tsumugi_scheduler_run(get(), call::run, &made, nullptr));
        if (made.thrown) std::rethrow_exception(made.thrown);
    }

    // Starts the workers in the background, until the scheduler ends.
    void start() { check(tsumugi_scheduler_start(get())); }
    struct tsumugi_scheduler *get() const noexcept { return scheduler_.get(); }

private:
    static void end(struct tsumugi_scheduler *made) noexcept { tsumugi_scheduler_destroy(made); }
    detail::owned<struct tsumugi_scheduler, end> scheduler_;
};

// A mutex on which ULTs sleep; std::lock_guard and std::unique_lock take it.
class mutex {
public:
    mutex()
    {
        struct tsumugi_mutex *made = nullptr;
        check(tsumugi_mutex_create(&made));
        mutex_.reset(made);
    }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    void lock() { check(tsumugi_mutex_lock(get())); }
    void unlock() noexcept { detail::must(tsumugi_mutex_unlock(get())); }
    bool try_lock()
    {
        int code = tsumugi_mutex_try_lock(get());
        if (code != TSUMUGI_ERROR_BUSY) check(code);
        return code == TSUMUGI_OK;
    }
    struct tsumugi_mutex *get() const noexcept { return mutex_.get(); }

private:
    static void end(struct tsumugi_mutex *made) noexcept { tsumugi_mutex_destroy(made); }
    detail::owned<struct tsumugi_mutex, end> mutex_;
};

// A condition variable of a tsumugi::mutex.
class condvar {
public:
    condvar()
    {
        struct tsumugi_condvar *made = nullptr;
        check(tsumugi_condvar_create(&made));
        condvar_.reset(made);
    }
    condvar(const condvar &) = delete;
    condvar &operator=(const condvar &) = delete;

    void wait(std::unique_lock<mutex> &lock)
    {
        check(tsumugi_condvar_wait(get(), lock.mutex()->get()));
    }
    template <class Predicate> void wait(std::unique_lock<mutex> &lock, Predicate is_true)
    {
        while (!is_true()) wait(lock);
    }
    void notify_one() { check(tsumugi_condvar_notify_one(get())); }
    void notify_all() { check(tsumugi_condvar_notify_all(get())); }
    struct tsumugi_condvar *get() const noexcept { return condvar_.get(); }

private:
    static void end(struct tsumugi_condvar *made) noexcept { tsumugi_condvar_destroy(made); }
    detail::owned<struct tsumugi_condvar, end> condvar_;
};

inline void yield() noexcept { tsumugi_yield(); }
inline void sleep_for(std::chrono::nanoseconds time) { tsumugi_sleep(detail::limit_of(time)); }

// ---- jobs ---------------------------------------------------------------------------

class job;

// The address of a T in the memory of any rank; a plain value, which may be sent.
template <class T> struct address {
    static_assert(detail::is_plain<T>, "remote memory holds bytes");
    tsumugi_addr bits = TSUMUGI_ADDR_NULL;

    explicit operator bool() const noexcept { return bits != TSUMUGI_ADDR_NULL; }
    // The address `count` values further; the access checks that it is in the region.
    address operator+(std::ptrdiff_t count) const noexcept
    {
        return {bits + static_cast<tsumugi_addr>(count) * sizeof(T)};
    }
    friend bool operator==(address a, address b) noexcept { return a.bits == b.bits; }
    friend bool operator!=(address a, address b) noexcept { return a.bits != b.bits; }
};

// Memory of this rank with a global address, which ends with this.
template <class T> class region {
public:
    region() noexcept = default;
    region(region &&other) noexcept
        : job_(other.job_), region_(std::exchange(other.region_, nullptr))
    {
    }
    region &operator=(region &&other) noexcept
    {
        region ended(std::move(other));
        std::swap(job_, ended.job_);
        std::swap(region_, ended.region_);
        return *this;
    }
    ~region()
    {
        if (region_ != nullptr) detail::must(tsumugi_unregister(job_, region_));
    }

    address<T> at(std::size_t index = 0) const noexcept
    {
        return {tsumugi_region_addr(region_) + index * sizeof(T)};
    }
    // The memory itself, which other ranks may change at any time.
    T *data() const noexcept { return static_cast<T *>(tsumugi_region_memory(region_)); }
    struct tsumugi_region *get() const noexcept { return region_; }

private:
    friend class job;
    region(const struct tsumugi_job *job, struct tsumugi_region *made) noexcept
        : job_(job), region_(made)
    {
    }
    const struct tsumugi_job *job_ = nullptr;
    struct tsumugi_region *region_ = nullptr;
};

// An operation that was begun. It goes on without its handle if that ends first.
class operation {
public:
    operation() noexcept = default;

    bool has_ended() const noexcept { return tsumugi_operation_test(operation_.get()); }
    // Waits until the operation has ended; the old value of an atomic, else 0. Blocks.
    std::uint64_t wait()
    {
        std::uint64_t old = 0;
        check(tsumugi_operation_wait(operation_.release(), &old));
        return old;
    }
    struct tsumugi_operation *get() const noexcept { return operation_.get(); }

private:
    friend class job;
    static void end(struct tsumugi_operation *made) noexcept { tsumugi_operation_let_go(made); }
    explicit operation(struct tsumugi_operation *made) noexcept : operation_(made) {}
    detail::owned<struct tsumugi_operation, end> operation_;
};

// This process as a rank of its job. All ranks make one, and end it, together.
class job {
public:
    // Starts the rank, with workers in the background. Blocks.
    job()
    {
        check(tsumugi_start(&job_));
        is_own_ = true;
    }
    // A job that tsumugi_run has made, which is not ended here.
    explicit job(struct tsumugi_job *made) noexcept : job_(made) {}
    job(job &&other) noexcept
        : job_(std::exchange(other.job_, nullptr)), is_own_(std::exchange(other.is_own_, false))
    {
    }
    job &operator=(job &&) = delete;
    ~job()
    {
        if (is_own_) detail::must(tsumugi_end(job_));
    }

    // Ends the rank, as the destructor does, and throws if the job has failed. Blocks.
    void end()
    {
        is_own_ = false;
        check(tsumugi_end(std::exchange(job_, nullptr)));
    }

    std::uint32_t rank() const noexcept { return tsumugi_rank(job_); }
    std::uint32_t size() const noexcept { return tsumugi_size(job_); }
    void barrier() const { check(tsumugi_barrier(job_)); }
    // The words of all ranks. Collective.
    std::vector<std::uint64_t> gather(std::uint64_t word) const
    {
        std::vector<std::uint64_t> all(size());
        check(tsumugi_gather(job_, word, all.data()));
        return all;
    }
    // The addresses of all ranks. Collective.
    template <class T> std::vector<address<T>> gather(address<T> own) const
    {
        std::vector<address<T>> all;
        for (std::uint64_t bits : gather(own.bits)) all.push_back({bits});
        return all;
    }

    // `count` values of zeroes that all ranks reach.
    template <class T>
    region<T> expose(std::size_t count, int agent = TSUMUGI_AGENT_CPU) const
    {
        struct tsumugi_region *made = nullptr;
        check(tsumugi_expose(job_, count * sizeof(T), agent, &made));
        return region<T>(job_, made);
    }
    // Gives `count` values of the program's own memory a global address. They outlive
    // the region.
    template <class T> region<T> share(T *memory, std::size_t count) const
    {
        struct tsumugi_region *made = nullptr;
        check(tsumugi_register(job_, memory, count * sizeof(T), &made));
        return region<T>(job_, made);
    }

    template <class T> T get(address<T> from) const
    {
        T value;
        check(tsumugi_get(job_, &value, from.bits, sizeof value));
        return value;
    }
    template <class T> void get(address<T> from, T *into, std::size_t count) const
    {
        check(tsumugi_get(job_, into, from.bits, count * sizeof(T)));
    }
    template <class T> void put(address<T> to, const T &value) const
    {
        check(tsumugi_put(job_, to.bits, &value, sizeof value));
    }
    template <class T> void put(address<T> to, const T *from, std::size_t count) const
    {
        check(tsumugi_put(job_, to.bits, from, count * sizeof(T)));
    }
    template <class T> void copy(address<T> to, address<T> from, std::size_t count = 1) const
    {
        check(tsumugi_copy(job_, to.bits, from.bits, count * sizeof(T)));
    }

    // The atomics return the old value.
    template <class T> T fetch_add(address<T> at, T value) const
    {
        return atomic(TSUMUGI_ATOMIC_ADD, at, value);
    }
    template <class T> T fetch_and(address<T> at, T mask) const
    {
        return atomic(TSUMUGI_ATOMIC_AND, at, mask);
    }
    template <class T> T fetch_or(address<T> at, T mask) const
    {
        return atomic(TSUMUGI_ATOMIC_OR, at, mask);
    }
    template <class T> T fetch_xor(address<T> at, T mask) const
    {
        return atomic(TSUMUGI_ATOMIC_XOR, at, mask);
    }
    template <class T> T exchange(address<T> at, T value) const
    {
        return atomic(TSUMUGI_ATOMIC_SWAP, at, value);
    }
    template <class T> T compare_exchange(address<T> at, T expected, T desired) const
    {
        static_assert(detail::is_word<T>, "an atomic is on an integer of 4 or 8 bytes");
        if constexpr (sizeof(T) == 4) {
            std::uint32_t old;
            check(tsumugi_compare_swap4(job_, at.bits, static_cast<std::uint32_t>(expected),
                                        static_cast<std::uint32_t>(desired), &old));
            return static_cast<T>(old);
        } else {
            std::uint64_t old;
            check(tsumugi_compare_swap8(job_, at.bits, static_cast<std::uint64_t>(expected),
                                        static_cast<std::uint64_t>(desired), &old));
            return static_cast<T>(old);
        }
    }

    // Begins a copy, which starts when `after` has ended.
    template <class T>
    operation begin_copy(address<T> to, address<T> from, std::size_t count,
                         const operation &after = operation()) const
    {
        struct tsumugi_operation *made = nullptr;
        check(tsumugi_begin_copy(job_, to.bits, from.bits, count * sizeof(T), after.get(), &made));
        return operation(made);
    }
    // Waits for all operations that were begun and touch `rank`, or for all. Blocks.
    void flush(std::uint32_t rank) const { check(tsumugi_flush(job_, rank)); }
    void flush() const { check(tsumugi_flush_all(job_)); }

    // Begins to run `function` on a ULT of the rank's workers.
    template <class F> ult spawn(F &&function) const
    {
        return ult(std::forward<F>(function), tsumugi_workers(job_));
    }
    struct tsumugi_job *get() const noexcept { return job_; }

private:
    template <class T> T atomic(int what, address<T> at, T operand) const
    {
        static_assert(detail::is_word<T>, "an atomic is on an integer of 4 or 8 bytes");
        if constexpr (sizeof(T) == 4) {
            std::uint32_t old;
            check(tsumugi_atomic4(job_, what, at.bits, static_cast<std::uint32_t>(operand), &old));
            return static_cast<T>(old);
        } else {
            std::uint64_t old;
            check(tsumugi_atomic8(job_, what, at.bits, static_cast<std::uint64_t>(operand), &old));
            return static_cast<T>(old);
        }
    }

    struct tsumugi_job *job_ = nullptr;
    bool is_own_ = false;
};

// ---- groups of ranks ----------------------------------------------------------------

// A collective that was begun. The memory that it was given, and its reduction, stay as
// they are until it has ended: this waits for that when it is destroyed.
class request {
public:
    request() noexcept = default;
    request(request &&other) noexcept : request_(std::exchange(other.request_, nullptr)) {}
    request &operator=(request &&other) noexcept
    {
        request ended(std::move(other));
        std::swap(request_, ended.request_);
        return *this;
    }
    ~request()
    {
        if (request_ != nullptr) tsumugi_request_wait(request_, nullptr);
    }

    // Waits for the end. Blocks.
    void wait() { check(tsumugi_request_wait(std::exchange(request_, nullptr), nullptr)); }
    // Whether the collective has ended; if so, this owns nothing any more.
    bool test()
    {
        bool is_done = false;
        int code = tsumugi_request_test(request_, &is_done, nullptr);
        if (is_done) request_ = nullptr;
        check(code);
        return is_done;
    }
    struct tsumugi_request *get() const noexcept { return request_; }

private:
    friend class group;
    // The place for a request that a call begins.
    struct tsumugi_request **place()
    {
        if (request_ != nullptr) wait();
        return &request_;
    }
    struct tsumugi_request *request_ = nullptr;
};

// The operations of the library; those on bits are for integers.
enum class combine : std::uint32_t {
    sum = TSUMUGI_SUM,
    prod = TSUMUGI_PROD,
    min = TSUMUGI_MIN,
    max = TSUMUGI_MAX,
    bit_and = TSUMUGI_AND,
    bit_or = TSUMUGI_OR,
    bit_xor = TSUMUGI_XOR
};

// How values of T are combined: by an operation of the library, or by a function of the
// program, which is associative. An exception that leaves the function ends the process.
template <class T> class reduction {
    static_assert(detail::is_plain<T>, "collectives move bytes");

public:
    reduction(combine what) : what_(what)
    {
        static_assert(std::is_arithmetic_v<T>, "other types have operations of the program");
    }
    // `commutes`: values may be combined in any order. An empty function is an error.
    explicit reduction(std::function<T(const T &lower, const T &higher)> function,
                       bool commutes = false)
        : function_(std::move(function)), commutes_(commutes)
    {
        if (!function_) throw error(TSUMUGI_ERROR_NULL, "function is empty");
    }

private:
    friend class group;
    struct tsumugi_reduction raw() const noexcept
    {
        struct tsumugi_reduction by = {};
        by.size = sizeof by;
        if (function_) {
            by.function = run;
            by.context = const_cast<void *>(static_cast<const void *>(&function_));
            by.element_bytes = sizeof(T);
            by.flags = commutes_ ? TSUMUGI_COMMUTES : 0;
        } else {
            by.what = static_cast<std::uint32_t>(what_);
            by.element = element();
        }
        return by;
    }
    static void run(void *context, const void *left, const void *right, void *into,
                    std::size_t count) noexcept
    {
        auto &function = *static_cast<const std::function<T(const T &, const T &)> *>(context);
        auto *lower = static_cast<const T *>(left), *higher = static_cast<const T *>(right);
        for (std::size_t n = 0; n < count; n++)
            static_cast<T *>(into)[n] = function(lower[n], higher[n]);
    }
    static constexpr std::uint32_t element() noexcept
    {
        if constexpr (std::is_floating_point_v<T>)
            return sizeof(T) == 8 ? TSUMUGI_F64 : TSUMUGI_F32;
        else if constexpr (sizeof(T) == 8)
            return std::is_signed_v<T> ? TSUMUGI_I64 : TSUMUGI_U64;
        else if constexpr (sizeof(T) == 4)
            return std::is_signed_v<T> ? TSUMUGI_I32 : TSUMUGI_U32;
        else if constexpr (sizeof(T) == 2)
            return std::is_signed_v<T> ? TSUMUGI_I16 : TSUMUGI_U16;
        else
            return std::is_signed_v<T> ? TSUMUGI_I8 : TSUMUGI_U8;
    }
    static_assert(!std::is_floating_point_v<T> || sizeof(T) <= 8, "there is no such float");

    std::function<T(const T &, const T &)> function_;
    combine what_ = combine::sum;
    bool commutes_ = true;
};

// Some ranks of a job, in an order. All members call the same collectives in the same
// order. A collective with a `begun` is begun there and goes on; without, it blocks.
class group {
public:
    // All ranks.
    explicit group(const job &of)
    {
        struct tsumugi_group *made = nullptr;
        check(tsumugi_group_world(of.get(), &made));
        group_.reset(made);
    }

    // The group of the members with the same color, in the order of their keys; none for a
    // member without a color. Collective.
    std::optional<group> split(std::optional<std::uint32_t> color, std::int64_t key = 0) const
    {
        struct tsumugi_group *made = nullptr;
        check(tsumugi_group_split(get(), color ? std::int64_t{*color} : TSUMUGI_NO_COLOR, key,
                                  &made));
        if (made == nullptr) return std::nullopt;
        return group(made);
    }
    // A group of the same members. Collective.
    group duplicate() const
    {
        struct tsumugi_group *made = nullptr;
        check(tsumugi_group_duplicate(get(), &made));
        return group(made);
    }
    std::uint32_t rank() const noexcept { return tsumugi_group_rank(get()); }
    std::uint32_t size() const noexcept { return tsumugi_group_size(get()); }
    // The rank of a member in the job.
    std::uint32_t translate(std::uint32_t member) const
    {
        std::uint32_t rank;
        check(tsumugi_group_translate(get(), member, &rank));
        return rank;
    }

    void barrier(request *begun = nullptr) const
    {
        check(tsumugi_group_barrier(get(), place(begun)));
    }
    template <class T>
    void broadcast(T *data, std::size_t count, std::uint32_t root, request *begun = nullptr) const
    {
        plain<T>();
        check(tsumugi_group_broadcast(get(), data, count * sizeof(T), root, place(begun)));
    }
    // The value of the member `root`.
    template <class T> T broadcast(T value, std::uint32_t root) const
    {
        broadcast(&value, 1, root);
        return value;
    }

    // Combinations, value by value; `from` may be `into`.
    template <class T>
    void reduce(const T *from, T *into, std::size_t count, const reduction<T> &by,
                std::uint32_t root, request *begun = nullptr) const
    {
        auto raw = by.raw();
        check(tsumugi_group_reduce(get(), from, into, count, &raw, root, place(begun)));
    }
    template <class T>
    void allreduce(const T *from, T *into, std::size_t count, const reduction<T> &by,
                   request *begun = nullptr) const
    {
        auto raw = by.raw();
        check(tsumugi_group_allreduce(get(), from, into, count, &raw, place(begun)));
    }
    template <class T> T allreduce(T value, const reduction<T> &by) const
    {
        allreduce(&value, &value, 1, by);
        return value;
    }
    template <class T> T allreduce(T value, combine what) const
    {
        return allreduce(value, reduction<T>(what));
    }
    template <class T> T sum(T value) const { return allreduce(value, combine::sum); }
    template <class T> T min(T value) const { return allreduce(value, combine::min); }
    template <class T> T max(T value) const { return allreduce(value, combine::max); }
    // Of the lower members and this one.
    template <class T>
    void scan(const T *from, T *into, std::size_t count, const reduction<T> &by,
              request *begun = nullptr) const
    {
        auto raw = by.raw();
        check(tsumugi_group_scan(get(), from, into, count, &raw, place(begun)));
    }
    // Of the lower members; the first one's `into` stays as it is.
    template <class T>
    void exscan(const T *from, T *into, std::size_t count, const reduction<T> &by,
                request *begun = nullptr) const
    {
        auto raw = by.raw();
        check(tsumugi_group_exscan(get(), from, into, count, &raw, place(begun)));
    }
    // A block of `count` values of the combination for each member.
    template <class T>
    void reduce_scatter(const T *from, T *into, std::size_t count, const reduction<T> &by,
                        request *begun = nullptr) const
    {
        auto raw = by.raw();
        check(tsumugi_group_reduce_scatter(get(), from, into, count, &raw, place(begun)));
    }
    template <class T>
    void reduce_scatter(const T *from, T *into, const std::vector<std::size_t> &counts,
                        const reduction<T> &by, request *begun = nullptr) const
    {
        auto raw = by.raw();
        check(tsumugi_group_reduce_scatter_v(get(), from, into, counts_of(counts), &raw,
                                             place(begun)));
    }

    // Blocks of `count` values, one of each member, or one for each.
    template <class T>
    void gather(const T *from, std::size_t count, T *into, std::uint32_t root,
                request *begun = nullptr) const
    {
        plain<T>();
        check(tsumugi_group_gather(get(), from, count * sizeof(T), into, root, place(begun)));
    }
    template <class T>
    void scatter(const T *from, T *into, std::size_t count, std::uint32_t root,
                 request *begun = nullptr) const
    {
        plain<T>();
        check(tsumugi_group_scatter(get(), from, into, count * sizeof(T), root, place(begun)));
    }
    template <class T>
    void allgather(const T *from, std::size_t count, T *into, request *begun = nullptr) const
    {
        plain<T>();
        check(tsumugi_group_allgather(get(), from, count * sizeof(T), into, place(begun)));
    }
    template <class T> std::vector<T> allgather(const T &value) const
    {
        std::vector<T> all(size());
        allgather(&value, 1, all.data());
        return all;
    }
    template <class T>
    void alltoall(const T *from, T *into, std::size_t count, request *begun = nullptr) const
    {
        plain<T>();
        check(tsumugi_group_alltoall(get(), from, into, count * sizeof(T), place(begun)));
    }

    // Blocks of different lengths, which follow each other; `counts` has a number of values
    // for each member. Of a gather and a scatter, the root alone gives `counts`.
    template <class T>
    void gather(const T *from, std::size_t count, T *into, const std::vector<std::size_t> &counts,
                std::uint32_t root, request *begun = nullptr) const
    {
        plain<T>();
        auto lens = lens_of<T>(counts, rank() == root);
        check(tsumugi_group_gather_v(get(), from, count * sizeof(T), into, lens.data(), nullptr,
                                     root, place(begun)));
    }
    template <class T>
    void scatter(const T *from, const std::vector<std::size_t> &counts, T *into, std::size_t count,
                 std::uint32_t root, request *begun = nullptr) const
    {
        plain<T>();
        auto lens = lens_of<T>(counts, rank() == root);
        check(tsumugi_group_scatter_v(get(), from, lens.data(), nullptr, into, count * sizeof(T),
                                      root, place(begun)));
    }
    template <class T>
    void allgather(const T *from, std::size_t count, T *into,
                   const std::vector<std::size_t> &counts, request *begun = nullptr) const
    {
        plain<T>();
        auto lens = lens_of<T>(counts, true);
        check(tsumugi_group_allgather_v(get(), from, count * sizeof(T), into, lens.data(),
                                        place(begun)));
    }
    template <class T>
    void alltoall(const T *from, const std::vector<std::size_t> &from_counts, T *into,
                  const std::vector<std::size_t> &into_counts, request *begun = nullptr) const
    {
        plain<T>();
        auto sent = lens_of<T>(from_counts, true), received = lens_of<T>(into_counts, true);
        check(tsumugi_group_alltoall_v(get(), from, sent.data(), nullptr, into, received.data(),
                                       nullptr, place(begun)));
    }
    struct tsumugi_group *get() const noexcept { return group_.get(); }

private:
    explicit group(struct tsumugi_group *made) noexcept : group_(made) {}
    static void end(struct tsumugi_group *made) noexcept { tsumugi_group_close(made); }
    static struct tsumugi_request **place(request *begun)
    {
        return begun == nullptr ? nullptr : begun->place();
    }
    template <class T> static constexpr void plain() noexcept
    {
        static_assert(detail::is_plain<T>, "collectives move bytes");
    }
    const std::size_t *counts_of(const std::vector<std::size_t> &counts) const
    {
        if (counts.size() != size())
            throw error(TSUMUGI_ERROR_LENGTH, std::to_string(counts.size()) + " counts for " +
                                                  std::to_string(size()) + " members");
        return counts.data();
    }
    template <class T>
    std::vector<std::size_t> lens_of(const std::vector<std::size_t> &counts, bool is_used) const
    {
        if (!is_used) return {};
        counts_of(counts);
        std::vector<std::size_t> lens(counts);
        for (std::size_t &len : lens) len *= sizeof(T);
        return lens;
    }
    detail::owned<struct tsumugi_group, end> group_;
};

// ---- work that other ranks steal ----------------------------------------------------

// A deque of each rank, with items of T. One thread of a rank at a time pushes and pops;
// any thread steals.
template <class T> class deque {
    static_assert(detail::is_plain<T>, "an item is copied between ranks");

public:
    // With room for at least `capacity` items. Collective.
    deque(const job &of, std::size_t capacity)
    {
        struct tsumugi_deque *made = nullptr;
        check(tsumugi_deque_create(of.get(), capacity, sizeof(T), &made));
        deque_.reset(made);
    }

    // Adds an item; false if there is no room.
    bool push(const T &item)
    {
        bool is_added;
        check(tsumugi_deque_push(get(), &item, &is_added));
        return is_added;
    }
    // Takes the newest item of this rank.
    std::optional<T> pop()
    {
        T item;
        bool is_taken;
        check(tsumugi_deque_pop(get(), &item, &is_taken));
        return is_taken ? std::optional<T>(item) : std::nullopt;
    }
    // Takes the oldest item of a rank. Blocks if it is on another node.
    std::optional<T> steal(std::uint32_t rank) const
    {
        T item;
        bool is_taken;
        check(tsumugi_deque_steal(get(), rank, &item, &is_taken));
        return is_taken ? std::optional<T>(item) : std::nullopt;
    }
    // The number of this rank's items; thieves may take some at any time.
    std::size_t size() const
    {
        std::size_t count;
        check(tsumugi_deque_count(get(), &count));
        return count;
    }
    struct tsumugi_deque *get() const noexcept { return deque_.get(); }

private:
    static void end(struct tsumugi_deque *made) noexcept { tsumugi_deque_destroy(made); }
    detail::owned<struct tsumugi_deque, end> deque_;
};

} // namespace tsumugi

#endif
