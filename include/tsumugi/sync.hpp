// What threads of one rank wait for together: permits, events, each other, a value.
#ifndef TSUMUGI_SYNC_HPP
#define TSUMUGI_SYNC_HPP

#include <tsumugi/error.hpp>

#include <cstring>

namespace tsumugi {

// A number of permits, handed out first come, first served.
class semaphore {
public:
    explicit semaphore(std::size_t permits)
    {
        struct tsumugi_semaphore *made = nullptr;
        detail::check_thread(tsumugi_semaphore_create(permits, &made));
        semaphore_.reset(made);
    }
    semaphore(const semaphore &) = delete;
    semaphore &operator=(const semaphore &) = delete;

    void acquire(std::size_t count = 1)
    {
        detail::check_thread(detail::sleeping(tsumugi_semaphore_acquire, get(), count));
    }
    bool try_acquire(std::size_t count = 1)
    {
        return detail::at_once(tsumugi_semaphore_try_acquire(get(), count));
    }
    // False if the time has passed, and no permit was taken.
    bool try_acquire_for(std::chrono::nanoseconds limit, std::size_t count = 1,
                         bool is_cancellable = false)
    {
        return detail::in_time(detail::sleeping(tsumugi_semaphore_acquire_within, get(), count,
                                                detail::limit_of(limit), is_cancellable));
    }
    void release(std::size_t count = 1)
    {
        detail::check_thread(tsumugi_semaphore_release(get(), count));
    }
    struct tsumugi_semaphore *get() const noexcept { return semaphore_.get(); }

private:
    static void end(struct tsumugi_semaphore *made) noexcept { tsumugi_semaphore_destroy(made); }
    detail::owned<struct tsumugi_semaphore, end> semaphore_;
};

// A count that goes down to 0, once.
class latch {
public:
    explicit latch(std::size_t count)
    {
        struct tsumugi_latch *made = nullptr;
        detail::check_thread(tsumugi_latch_create(count, &made));
        latch_.reset(made);
    }
    latch(const latch &) = delete;
    latch &operator=(const latch &) = delete;

    // An error if the count is lower.
    void count_down(std::size_t by = 1)
    {
        detail::check_thread(tsumugi_latch_count_down(get(), by));
    }
    void wait() const { detail::check_thread(detail::sleeping(tsumugi_latch_wait, get())); }
    // False if the time has passed.
    bool wait_for(std::chrono::nanoseconds limit, bool is_cancellable = false) const
    {
        return detail::in_time(detail::sleeping(tsumugi_latch_wait_within, get(),
                                                detail::limit_of(limit), is_cancellable));
    }
    void arrive_and_wait(std::size_t by = 1)
    {
        count_down(by);
        wait();
    }
    struct tsumugi_latch *get() const noexcept { return latch_.get(); }

private:
    static void end(struct tsumugi_latch *made) noexcept { tsumugi_latch_destroy(made); }
    detail::owned<struct tsumugi_latch, end> latch_;
};

// A barrier of a fixed number of threads of this rank, for repeated use.
class barrier {
public:
    explicit barrier(std::size_t members)
    {
        struct tsumugi_meeting *made = nullptr;
        detail::check_thread(tsumugi_meeting_create(members, &made));
        meeting_.reset(made);
    }
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;

    // Waits until all members have arrived; true for the one that arrived last. Blocks.
    bool arrive_and_wait()
    {
        bool is_last = false;
        detail::check_thread(detail::sleeping(tsumugi_meeting_wait, get(), &is_last));
        return is_last;
    }
    // Does the same within a time limit; nothing if that has passed, and the caller has not
    // arrived.
    std::optional<bool> arrive_and_wait_for(std::chrono::nanoseconds limit,
                                            bool is_cancellable = false)
    {
        bool is_last = false;
        if (!detail::in_time(detail::sleeping(tsumugi_meeting_wait_within, get(),
                                              detail::limit_of(limit), is_cancellable, &is_last)))
            return std::nullopt;
        return is_last;
    }
    struct tsumugi_meeting *get() const noexcept { return meeting_.get(); }

private:
    static void end(struct tsumugi_meeting *made) noexcept { tsumugi_meeting_destroy(made); }
    detail::owned<struct tsumugi_meeting, end> meeting_;
};

// An initialization that one thread does, once.
class once {
public:
    once() noexcept = default;
    once(const once &) = delete;
    once &operator=(const once &) = delete;

    // Calls `init` if no thread has, and returns when such a call is over. What `init` has
    // thrown, each call throws. Blocks.
    template <class F> void call(F &&init)
    {
        struct run {
            once *self;
            F &init;
        } one{this, init};
        auto enter = [](void *of) {
            auto *one = static_cast<run *>(of);
            detail::call<F &> call(one->init);
            call.run();
            one->self->thrown_ = call.thrown();
        };
        detail::check_thread(detail::sleeping(tsumugi_once_call, &once_,
                                              static_cast<void (*)(void *)>(enter), &one));
        if (thrown_) std::rethrow_exception(thrown_);
    }

private:
    struct tsumugi_once once_ = {};
    std::exception_ptr thrown_;
};

// A value of up to 8 bytes that is full or empty: readers wait until it is full, and
// `write_empty` until it is empty. It begins empty, or full with a value.
template <class T> class full_empty {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a T is in a word");

public:
    full_empty() { detail::check_thread(tsumugi_word_empty(&word_)); }
    explicit full_empty(T value) : word_(word_of(value)) {}
    full_empty(const full_empty &) = delete;
    full_empty &operator=(const full_empty &) = delete;
    ~full_empty() { tsumugi_word_fill(&word_); }

    bool is_full() const noexcept { return tsumugi_word_is_full(&word_); }
    void fill() { detail::check_thread(tsumugi_word_fill(&word_)); }
    void empty() { detail::check_thread(tsumugi_word_empty(&word_)); }
    // Writes and fills, whatever the word was.
    void write(T value) { detail::check_thread(tsumugi_word_write(&word_, word_of(value))); }
    // Waits until the word is empty, writes it and fills it. Blocks.
    void write_empty(T value)
    {
        detail::check_thread(
            detail::sleeping(tsumugi_word_write_empty, &word_, word_of(value)));
    }
    // Waits until the word is full, and writes it. Blocks.
    void write_full(T value)
    {
        detail::check_thread(detail::sleeping(tsumugi_word_write_full, &word_, word_of(value)));
    }
    // Waits until the word is full, and reads it. Blocks.
    T read() const
    {
        std::uint64_t value;
        detail::check_thread(detail::sleeping(tsumugi_word_read, &word_, &value));
        return value_of(value);
    }
    // Waits until the word is full, reads it and empties it. Blocks.
    T take()
    {
        std::uint64_t value;
        detail::check_thread(detail::sleeping(tsumugi_word_take, &word_, &value));
        return value_of(value);
    }

    // The same within a time limit; false or nothing if that has passed. Blocks.
    bool write_empty_for(T value, std::chrono::nanoseconds limit, bool is_cancellable = false)
    {
        return detail::in_time(detail::sleeping(tsumugi_word_write_empty_within, &word_,
                                                word_of(value), detail::limit_of(limit),
                                                is_cancellable));
    }
    bool write_full_for(T value, std::chrono::nanoseconds limit, bool is_cancellable = false)
    {
        return detail::in_time(detail::sleeping(tsumugi_word_write_full_within, &word_,
                                                word_of(value), detail::limit_of(limit),
                                                is_cancellable));
    }
    std::optional<T> read_for(std::chrono::nanoseconds limit, bool is_cancellable = false) const
    {
        std::uint64_t value;
        if (!detail::in_time(detail::sleeping(tsumugi_word_read_within, &word_, &value,
                                              detail::limit_of(limit), is_cancellable)))
            return std::nullopt;
        return value_of(value);
    }
    std::optional<T> take_for(std::chrono::nanoseconds limit, bool is_cancellable = false)
    {
        std::uint64_t value;
        if (!detail::in_time(detail::sleeping(tsumugi_word_take_within, &word_, &value,
                                              detail::limit_of(limit), is_cancellable)))
            return std::nullopt;
        return value_of(value);
    }

private:
    static std::uint64_t word_of(T value) noexcept
    {
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof value);
        return word;
    }
    static T value_of(std::uint64_t word) noexcept
    {
        T value;
        std::memcpy(&value, &word, sizeof value);
        return value;
    }
    std::uint64_t word_ = 0;
};

} // namespace tsumugi

#endif
