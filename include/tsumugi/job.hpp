// This process as a rank of its job, and the memory of all ranks.
#ifndef TSUMUGI_JOB_HPP
#define TSUMUGI_JOB_HPP

#include <tsumugi/address.hpp>
#include <tsumugi/thread.hpp>

#include <mutex>
#include <vector>

namespace tsumugi {

// Where the function of an active message runs: on the thread that polls, where it must not
// block, because the next message waits for it; or on a ULT of its own.
enum class runs { at_once, on_ult };

namespace detail {

// The functions of active messages, which live until the job has ended.
class handlers {
public:
    void keep(std::shared_ptr<void> function)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        all_.push_back(std::move(function));
    }

private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<void>> all_;
};

} // namespace detail

// This process as a rank of its job. All ranks make one, and end it, together. The objects
// that are made of a job end before it.
class job {
public:
    // Starts the rank, with workers in the background. Blocks.
    job() : handlers_(std::make_shared<detail::handlers>())
    {
        check_start(detail::sleeping(tsumugi_start, &job_));
        is_own_ = true;
    }
    // A job that tsumugi_run has made, which is not ended here. Functions of active messages
    // that are given to this live as long as the process.
    explicit job(struct tsumugi_job *made)
        : job_(made), handlers_(new detail::handlers, [](detail::handlers *) {})
    {
    }
    job(job &&other) noexcept
        : job_(std::exchange(other.job_, nullptr)), is_own_(std::exchange(other.is_own_, false)),
          handlers_(std::move(other.handlers_))
    {
    }
    job &operator=(job &&) = delete;
    ~job()
    {
        if (is_own_) detail::ignore(detail::sleeping(tsumugi_end, job_));
    }

    // Ends the rank, as the destructor does, and throws if the job has failed. Blocks.
    void end()
    {
        is_own_ = false;
        check_start(detail::sleeping(tsumugi_end, std::exchange(job_, nullptr)));
    }

    std::uint32_t rank() const noexcept { return tsumugi_rank(job_); }
    std::uint32_t size() const noexcept { return tsumugi_size(job_); }
    void barrier() const { detail::check_access(detail::sleeping(tsumugi_barrier, job_)); }
    // The words of all ranks. Collective.
    std::vector<std::uint64_t> gather(std::uint64_t word) const
    {
        std::vector<std::uint64_t> all(size());
        detail::check_access(detail::sleeping(tsumugi_gather, job_, word, all.data()));
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
    template <class T> region<T> expose(std::size_t count, agent by = agent::cpu) const
    {
        struct tsumugi_region *made = nullptr;
        detail::check_access(
            tsumugi_expose(job_, detail::bytes_of<T>(count), static_cast<int>(by), &made));
        return region<T>(job_, made);
    }
    // Gives `count` values of the program's own memory a global address. They outlive
    // the region.
    template <class T> region<T> share(T *memory, std::size_t count) const
    {
        struct tsumugi_region *made = nullptr;
        detail::check_access(
            tsumugi_register(job_, memory, detail::bytes_of<T>(count), &made));
        return region<T>(job_, made);
    }
    // The memory that each rank has from the start, zero at first.
    template <class T> address<T> starter(std::uint32_t rank) const
    {
        address<T> out;
        detail::check_access(tsumugi_starter(job_, rank, &out.bits));
        return out;
    }

    // The rank that owns the memory at an address.
    template <class T> std::uint32_t rank_of(address<T> at) const
    {
        std::uint32_t rank;
        detail::check_access(tsumugi_addr_rank(job_, at.bits, &rank));
        return rank;
    }
    // The global address of memory of this rank.
    template <class T> address<T> address_of(const T *memory) const
    {
        address<T> out;
        detail::check_access(tsumugi_addr_of(job_, memory, &out.bits));
        return out;
    }
    // The address `count` values further, checked to be one of some region.
    template <class T> address<T> advance(address<T> from, std::int64_t count) const
    {
        std::int64_t bytes;
        if (__builtin_mul_overflow(count, static_cast<std::int64_t>(sizeof(T)), &bytes))
            throw error(TSUMUGI_ERROR_RANGE, std::to_string(count) + " values of " +
                                                 std::to_string(sizeof(T)) +
                                                 " bytes are more than an address space");
        address<T> out;
        detail::check_access(tsumugi_addr_add(job_, from.bits, bytes, &out.bits));
        return out;
    }
    // Where values of this rank, or of another rank of this node, lie in this process.
    template <class T> T *local(address<T> at, std::size_t count = 1) const
    {
        void *out;
        detail::check_access(
            tsumugi_addr_local(job_, at.bits, detail::bytes_of<T>(count), &out));
        return static_cast<T *>(out);
    }

    template <class T> T get(address<T> from) const
    {
        T value;
        get(from, &value, 1);
        return value;
    }
    template <class T> void get(address<T> from, T *into, std::size_t count) const
    {
        detail::check_access(detail::sleeping(tsumugi_get, job_, into, from.bits,
                                              detail::bytes_of<T>(count)));
    }
    template <class T> void put(address<T> to, const T &value) const { put(to, &value, 1); }
    template <class T> void put(address<T> to, const T *from, std::size_t count) const
    {
        detail::check_access(detail::sleeping(tsumugi_put, job_, to.bits, from,
                                              detail::bytes_of<T>(count)));
    }
    template <class T> void copy(address<T> to, address<T> from, std::size_t count = 1) const
    {
        detail::check_access(detail::sleeping(tsumugi_copy, job_, to.bits, from.bits,
                                              detail::bytes_of<T>(count)));
    }

    // The atomics return the old value.
    template <class T> T fetch_add(address<T> at, T value) const
    {
        return atomic(atomic_op::add, at, value);
    }
    template <class T> T fetch_and(address<T> at, T mask) const
    {
        return atomic(atomic_op::bit_and, at, mask);
    }
    template <class T> T fetch_or(address<T> at, T mask) const
    {
        return atomic(atomic_op::bit_or, at, mask);
    }
    template <class T> T fetch_xor(address<T> at, T mask) const
    {
        return atomic(atomic_op::bit_xor, at, mask);
    }
    template <class T> T exchange(address<T> at, T value) const
    {
        return atomic(atomic_op::swap, at, value);
    }
    template <class T> T atomic(atomic_op what, address<T> at, T operand) const
    {
        auto by = [&](auto function) {
            return [this, function, what, at, operand](auto *old) {
                detail::check_access(detail::sleeping(function, job_, static_cast<int>(what),
                                                      at.bits, detail::bits_of(operand), old));
            };
        };
        return detail::atomic<T>(by(tsumugi_atomic4), by(tsumugi_atomic8));
    }
    template <class T> T compare_exchange(address<T> at, T expected, T desired) const
    {
        auto by = [&](auto function) {
            return [this, function, at, expected, desired](auto *old) {
                detail::check_access(detail::sleeping(function, job_, at.bits,
                                                      detail::bits_of(expected),
                                                      detail::bits_of(desired), old));
            };
        };
        return detail::atomic<T>(by(tsumugi_compare_swap4), by(tsumugi_compare_swap8));
    }

    // Begins a copy, which starts when `after` has ended.
    template <class T>
    operation begin_copy(address<T> to, address<T> from, std::size_t count,
                         const operation &after = operation()) const
    {
        return begin(tsumugi_begin_copy, to.bits, from.bits, detail::bytes_of<T>(count),
                     after.get());
    }
    // Begins a put of memory of this rank with a global address, which stays as it is until
    // the operation has ended.
    template <class T>
    operation begin_put(address<T> to, const T *from, std::size_t count,
                        const operation &after = operation()) const
    {
        return begin(tsumugi_begin_put, to.bits, from, detail::bytes_of<T>(count), after.get());
    }
    // Begins a get into memory of this rank with a global address.
    template <class T>
    operation begin_get(address<T> from, T *into, std::size_t count,
                        const operation &after = operation()) const
    {
        return begin(tsumugi_begin_get, into, from.bits, detail::bytes_of<T>(count),
                     after.get());
    }
    // Begins an atomic; the wait returns the bits of the old value.
    template <class T>
    operation begin_atomic(atomic_op what, address<T> at, T operand,
                           const operation &after = operation()) const
    {
        static_assert(detail::is_word<T>, "an atomic is on an integer of 4 or 8 bytes");
        int of = static_cast<int>(what);
        if constexpr (sizeof(T) == 4)
            return begin(tsumugi_begin_atomic4, of, at.bits, detail::bits_of(operand),
                         after.get());
        else
            return begin(tsumugi_begin_atomic8, of, at.bits, detail::bits_of(operand),
                         after.get());
    }
    // Waits for all operations that were begun and touch `rank`, or for all. Blocks.
    void flush(std::uint32_t rank) const
    {
        detail::check_access(detail::sleeping(tsumugi_flush, job_, rank));
    }
    void flush() const { detail::check_access(detail::sleeping(tsumugi_flush_all, job_)); }

    // Puts values, and then changes a word and wakes the threads that wait for it: a thread
    // that sees the signal sees the values.
    template <class T>
    void put_signal(address<T> to, const T *from, std::size_t count, address<std::uint64_t> word,
                    signal_op how, std::uint64_t value) const
    {
        check(detail::sleeping(tsumugi_put_signal, job_, to.bits, from,
                               detail::bytes_of<T>(count), word.bits, static_cast<int>(how),
                               value));
    }
    // Changes a word and wakes the threads that wait for it; returns the old value.
    std::uint64_t signal(address<std::uint64_t> word, signal_op how, std::uint64_t value) const
    {
        std::uint64_t old;
        check(detail::sleeping(tsumugi_signal, job_, word.bits, static_cast<int>(how), value,
                               &old));
        return old;
    }
    // Waits until a signal has given a word of this rank such a value; returns it. Blocks.
    std::uint64_t wait_until(address<std::uint64_t> word, until condition,
                             std::uint64_t value) const
    {
        std::uint64_t found;
        check(detail::sleeping(tsumugi_wait_until, job_, word.bits, static_cast<int>(condition),
                               value, &found));
        return found;
    }
    // Does the same within a time limit; nothing if that has passed.
    std::optional<std::uint64_t> wait_until_for(address<std::uint64_t> word, until condition,
                                                std::uint64_t value,
                                                std::chrono::nanoseconds limit) const
    {
        std::uint64_t found;
        int code = detail::sleeping(tsumugi_wait_until_within, job_, word.bits,
                                    static_cast<int>(condition), value, detail::limit_of(limit),
                                    &found);
        if (code == TSUMUGI_ERROR_TIMED_OUT) return std::nullopt;
        check(code);
        return found;
    }

    // Begins to run `function` on a ULT of the rank's workers.
    template <class F> ult spawn(F &&function) const
    {
        return ult(std::forward<F>(function), tsumugi_workers(job_));
    }
    const struct tsumugi_scheduler *workers() const noexcept { return tsumugi_workers(job_); }

    // Runs `function(from, bytes, count, answer)` for each message to `number`, until the
    // job ends: it returns how many bytes of the TSUMUGI_ANSWER_BYTES_MAX at `answer` are
    // the answer. Several threads may run it at once. What it throws is a failure, of which
    // the caller is told. tsumugi::remote is the same with types.
    template <class F> void handle(std::uint32_t number, F &&function, runs where) const
    {
        using G = std::decay_t<F>;
        auto kept = std::make_shared<G>(std::forward<F>(function));
        auto enter = [](void *of, std::uint32_t from, const void *bytes, std::size_t count,
                        void *answer) noexcept -> std::size_t {
            try {
                return (*static_cast<G *>(of))(from, bytes, count, answer);
            } catch (...) {
                return TSUMUGI_ANSWER_BYTES_MAX + 1;
            }
        };
        if (handlers_) handlers_->keep(kept);
        auto *add = where == runs::at_once ? tsumugi_handler : tsumugi_service;
        check(add(job_, number, enter, kept.get()));
    }
    // Sends bytes to the function `number` of a rank, and waits for its answer; returns the
    // number of bytes of that. Blocks.
    std::size_t call(std::uint32_t to, std::uint32_t number, const void *from, std::size_t bytes,
                     void *answer, std::size_t room) const
    {
        std::size_t count;
        check(detail::sleeping(tsumugi_call, job_, to, number, from, bytes, answer, room,
                               &count));
        return count;
    }
    // Does the same within a time limit; nothing if that has passed: the function may have
    // run, or may run later.
    std::optional<std::size_t> call_for(std::chrono::nanoseconds limit, std::uint32_t to,
                                        std::uint32_t number, const void *from,
                                        std::size_t bytes, void *answer, std::size_t room) const
    {
        std::size_t count;
        int code = detail::sleeping(tsumugi_call_within, job_, to, number, from, bytes,
                                    detail::limit_of(limit), answer, room, &count);
        if (code == TSUMUGI_ERROR_TIMED_OUT) return std::nullopt;
        check(code);
        return count;
    }
    // Sends bytes to the function `number` of a rank, without an answer.
    void cast(std::uint32_t to, std::uint32_t number, const void *from, std::size_t bytes) const
    {
        check(detail::sleeping(tsumugi_cast, job_, to, number, from, bytes));
    }
    struct tsumugi_job *get() const noexcept { return job_; }

private:
    template <class F> friend auto run(F &&main);
    job(struct tsumugi_job *made, std::shared_ptr<detail::handlers> kept) noexcept
        : job_(made), handlers_(std::move(kept))
    {
    }
    // The failures of a start and an end have a reason, but for NULL.
    static void check_start(int code) { detail::check_access(code); }
    template <class Begin, class... A> operation begin(Begin *function, A... arguments) const
    {
        struct tsumugi_operation *made = nullptr;
        detail::check_access(detail::sleeping(function, job_, arguments..., &made));
        return operation(made);
    }

    struct tsumugi_job *job_ = nullptr;
    bool is_own_ = false;
    std::shared_ptr<detail::handlers> handlers_;
};

// Makes this process a rank, runs `main(job)` on a ULT, with the calling thread as a worker,
// and ends the rank; returns what `main` returns, and throws what it throws, when all ranks
// have ended. At most once in a process. Blocks.
template <class F> auto run(F &&main)
{
    auto kept = std::make_shared<detail::handlers>();
    auto with_job = [&](struct tsumugi_job *made) {
        const job as_rank(made, kept);
        return main(as_rank);
    };
    using call = detail::call<decltype(with_job), struct tsumugi_job *>;
    call made(with_job);
    auto enter = [](struct tsumugi_job *job, void *made) -> void * {
        static_cast<call *>(made)->run(job);
        return nullptr;
    };
    detail::check_access(detail::sleeping(
        tsumugi_run, static_cast<void *(*)(struct tsumugi_job *, void *)>(enter), &made,
        nullptr));
    return made.end();
}

} // namespace tsumugi

#endif
