// Locks on which ULTs sleep, for the lock guards of the standard library.
#ifndef TSUMUGI_LOCK_HPP
#define TSUMUGI_LOCK_HPP

#include <tsumugi/error.hpp>

#include <mutex>
#include <shared_mutex>

namespace tsumugi {

// A mutex, first come, first served. std::lock_guard and std::unique_lock take it, as a
// timed one, too; it may be unlocked on another OS thread than it was locked on.
class mutex {
public:
    mutex()
    {
        struct tsumugi_mutex *made = nullptr;
        detail::check_thread(tsumugi_mutex_create(&made));
        mutex_.reset(made);
    }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    void lock() { detail::check_thread(detail::sleeping(tsumugi_mutex_lock, get())); }
    void unlock() noexcept { detail::must(tsumugi_mutex_unlock(get())); }
    bool try_lock() { return detail::at_once(tsumugi_mutex_try_lock(get())); }
    // False if the time has passed. `is_cancellable`: a cancellation of the caller ends the
    // wait, as an error; so in all calls with this parameter.
    bool try_lock_for(std::chrono::nanoseconds limit, bool is_cancellable = false)
    {
        return detail::in_time(detail::sleeping(tsumugi_mutex_lock_within, get(),
                                                detail::limit_of(limit), is_cancellable));
    }
    template <class Clock, class D> bool try_lock_until(std::chrono::time_point<Clock, D> end)
    {
        return try_lock_for(end - Clock::now());
    }
    struct tsumugi_mutex *get() const noexcept { return mutex_.get(); }

private:
    static void end(struct tsumugi_mutex *made) noexcept { tsumugi_mutex_destroy(made); }
    detail::owned<struct tsumugi_mutex, end> mutex_;
};

// A condition variable of a tsumugi::mutex. No wait ends without a notification.
class condvar {
public:
    condvar()
    {
        struct tsumugi_condvar *made = nullptr;
        detail::check_thread(tsumugi_condvar_create(&made));
        condvar_.reset(made);
    }
    condvar(const condvar &) = delete;
    condvar &operator=(const condvar &) = delete;

    void wait(std::unique_lock<mutex> &lock)
    {
        detail::check_thread(
            detail::sleeping(tsumugi_condvar_wait, get(), lock.mutex()->get()));
    }
    template <class Predicate> void wait(std::unique_lock<mutex> &lock, Predicate is_true)
    {
        while (!is_true()) wait(lock);
    }
    // False if the time has passed; the mutex is locked again in any case.
    bool wait_for(std::unique_lock<mutex> &lock, std::chrono::nanoseconds limit,
                  bool is_cancellable = false)
    {
        return detail::in_time(detail::sleeping(tsumugi_condvar_wait_within, get(),
                                                lock.mutex()->get(), detail::limit_of(limit),
                                                is_cancellable));
    }
    // Returns whether `is_true` is.
    template <class Predicate, class = std::enable_if_t<std::is_invocable_r_v<bool, Predicate &>>>
    bool wait_for(std::unique_lock<mutex> &lock, std::chrono::nanoseconds limit,
                  Predicate is_true)
    {
        auto end = std::chrono::steady_clock::now() + limit;
        while (!is_true())
            if (!wait_for(lock, end - std::chrono::steady_clock::now())) return is_true();
        return true;
    }
    void notify_one() { detail::check_thread(tsumugi_condvar_notify_one(get())); }
    void notify_all() { detail::check_thread(tsumugi_condvar_notify_all(get())); }
    struct tsumugi_condvar *get() const noexcept { return condvar_.get(); }

private:
    static void end(struct tsumugi_condvar *made) noexcept { tsumugi_condvar_destroy(made); }
    detail::owned<struct tsumugi_condvar, end> condvar_;
};

// A lock that many threads may have for reading, or one for writing, first come, first
// served. std::shared_lock and std::unique_lock take it.
class rwlock {
public:
    rwlock()
    {
        struct tsumugi_rwlock *made = nullptr;
        detail::check_thread(tsumugi_rwlock_create(&made));
        rwlock_.reset(made);
    }
    rwlock(const rwlock &) = delete;
    rwlock &operator=(const rwlock &) = delete;

    void lock() { detail::check_thread(detail::sleeping(tsumugi_rwlock_write, get())); }
    void unlock() noexcept { detail::must(tsumugi_rwlock_unlock_write(get())); }
    bool try_lock() { return detail::at_once(tsumugi_rwlock_try_write(get())); }
    bool try_lock_for(std::chrono::nanoseconds limit, bool is_cancellable = false)
    {
        return detail::in_time(detail::sleeping(tsumugi_rwlock_write_within, get(),
                                                detail::limit_of(limit), is_cancellable));
    }
    template <class Clock, class D> bool try_lock_until(std::chrono::time_point<Clock, D> end)
    {
        return try_lock_for(end - Clock::now());
    }

    void lock_shared() { detail::check_thread(detail::sleeping(tsumugi_rwlock_read, get())); }
    void unlock_shared() noexcept { detail::must(tsumugi_rwlock_unlock_read(get())); }
    bool try_lock_shared() { return detail::at_once(tsumugi_rwlock_try_read(get())); }
    bool try_lock_shared_for(std::chrono::nanoseconds limit, bool is_cancellable = false)
    {
        return detail::in_time(detail::sleeping(tsumugi_rwlock_read_within, get(),
                                                detail::limit_of(limit), is_cancellable));
    }
    template <class Clock, class D>
    bool try_lock_shared_until(std::chrono::time_point<Clock, D> end)
    {
        return try_lock_shared_for(end - Clock::now());
    }
    struct tsumugi_rwlock *get() const noexcept { return rwlock_.get(); }

private:
    static void end(struct tsumugi_rwlock *made) noexcept { tsumugi_rwlock_destroy(made); }
    detail::owned<struct tsumugi_rwlock, end> rwlock_;
};

} // namespace tsumugi

#endif
