// Locks for the threads of all ranks.
#ifndef TSUMUGI_RANK_LOCK_HPP
#define TSUMUGI_RANK_LOCK_HPP

#include <tsumugi/job.hpp>

#include <mutex>
#include <shared_mutex>

namespace tsumugi {

// Who goes first: `mutex` has exclusive holds only; readers or writers may starve with
// `readers` and `writers`, and none with `neutral`.
enum class preference : int {
    mutex = TSUMUGI_RANK_LOCK_MUTEX,
    readers = TSUMUGI_RANK_LOCK_READERS,
    neutral = TSUMUGI_RANK_LOCK_NEUTRAL,
    writers = TSUMUGI_RANK_LOCK_WRITERS
};

// A lock for the threads and ULTs of all ranks. std::unique_lock and std::shared_lock take
// it. A hold belongs to the rank, so any of its threads may give it back. An unlock that
// fails, because the holder has lost another rank, is silent: the next lock throws.
class rank_lock {
public:
    // With its words in the memory of `home`. Collective.
    explicit rank_lock(const job &of, std::uint32_t home = 0,
                       preference kind = preference::neutral)
    {
        struct tsumugi_rank_lock *made = nullptr;
        check(detail::sleeping(tsumugi_rank_lock_create, of.get(), home, static_cast<int>(kind),
                               &made));
        lock_.reset(made);
    }

    void lock() { take(TSUMUGI_EXCLUSIVE); }
    void unlock() noexcept { give_back(); }
    bool try_lock() { return try_take(TSUMUGI_EXCLUSIVE); }
    // False if the time has passed.
    bool try_lock_for(std::chrono::nanoseconds limit)
    {
        return take_for(TSUMUGI_EXCLUSIVE, limit);
    }
    template <class Clock, class D> bool try_lock_until(std::chrono::time_point<Clock, D> end)
    {
        return try_lock_for(end - Clock::now());
    }

    void lock_shared() { take(TSUMUGI_SHARED); }
    void unlock_shared() noexcept { give_back(); }
    bool try_lock_shared() { return try_take(TSUMUGI_SHARED); }
    bool try_lock_shared_for(std::chrono::nanoseconds limit)
    {
        return take_for(TSUMUGI_SHARED, limit);
    }
    template <class Clock, class D>
    bool try_lock_shared_until(std::chrono::time_point<Clock, D> end)
    {
        return try_lock_shared_for(end - Clock::now());
    }
    struct tsumugi_rank_lock *get() const noexcept { return lock_.get(); }

private:
    void take(int mode) { check(detail::sleeping(tsumugi_rank_lock_lock, get(), mode)); }
    bool try_take(int mode)
    {
        int code = detail::sleeping(tsumugi_rank_lock_try_lock, get(), mode);
        if (code != TSUMUGI_ERROR_BUSY) check(code);
        return code == TSUMUGI_OK;
    }
    bool take_for(int mode, std::chrono::nanoseconds limit)
    {
        int code = detail::sleeping(tsumugi_rank_lock_lock_within, get(), mode,
                                    detail::limit_of(limit));
        if (code != TSUMUGI_ERROR_TIMED_OUT) check(code);
        return code == TSUMUGI_OK;
    }
    void give_back() noexcept
    {
        int code = detail::sleeping(tsumugi_rank_lock_unlock, get());
        if (code != TSUMUGI_ERROR_LOST) detail::must(code);
    }
    static void end(struct tsumugi_rank_lock *made) noexcept
    {
        detail::ignore(detail::sleeping(tsumugi_rank_lock_destroy, made));
    }
    detail::owned<struct tsumugi_rank_lock, end> lock_;
};

} // namespace tsumugi

#endif
