// Messages and collectives that were begun.
#ifndef TSUMUGI_REQUEST_HPP
#define TSUMUGI_REQUEST_HPP

#include <tsumugi/error.hpp>

#include <vector>

namespace tsumugi {

// A message that has come.
struct received {
    std::uint32_t source = 0;
    std::uint32_t tag = 0;
    // Its length, also where that is more than the room for it.
    std::size_t bytes = 0;

    received() noexcept = default;
    received(const struct tsumugi_received &from) noexcept
        : source(from.source), tag(from.tag), bytes(from.bytes)
    {
    }
    // Its number of values; an error if there is a part of one.
    template <class T> std::size_t count() const
    {
        if (bytes % sizeof(T) != 0)
            throw error(TSUMUGI_ERROR_LENGTH,
                        "a message of " + std::to_string(bytes) + " bytes from rank " +
                            std::to_string(source) + " with tag " + std::to_string(tag) +
                            " has no whole number of values of " + std::to_string(sizeof(T)) +
                            " bytes");
        return bytes / sizeof(T);
    }
};

// A message or a collective that was begun. The memory that it was given, and its
// reduction, stay as they are until it has ended: when this is destroyed, it asks a receive
// to take no message any more, and waits for the end.
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
        if (request_ == nullptr) return;
        // Refused for all that is no receive.
        detail::ignore(tsumugi_request_cancel(request_));
        detail::ignore(detail::sleeping(tsumugi_request_wait, request_, nullptr));
    }

    // Waits for the end; returns what has come, or of a send what has gone. Blocks.
    received wait()
    {
        struct tsumugi_received what = {};
        check(detail::sleeping(tsumugi_request_wait, std::exchange(request_, nullptr), &what));
        return what;
    }
    // Whether this has ended; if so, it owns nothing any more.
    bool test(received *what = nullptr)
    {
        bool is_done = false;
        struct tsumugi_received got = {};
        int code = tsumugi_request_test(request_, &is_done, &got);
        if (is_done) request_ = nullptr;
        check(code);
        if (is_done && what != nullptr) *what = got;
        return is_done;
    }
    // Asks a receive to take no message any more: the wait then throws CANCELLED, or returns
    // a message that was arriving already.
    void cancel() { check(tsumugi_request_cancel(request_)); }
    explicit operator bool() const noexcept { return request_ != nullptr; }
    struct tsumugi_request *get() const noexcept { return request_; }

private:
    friend class group;
    friend class comm;
    friend std::vector<received> wait_all(request *, std::size_t);
    friend std::size_t wait_any(request *, std::size_t, received *);

    // The place for a request that a call begins.
    struct tsumugi_request **place()
    {
        if (request_ != nullptr) wait();
        return &request_;
    }
    static std::vector<struct tsumugi_request *> handles(const request *all, std::size_t count)
    {
        std::vector<struct tsumugi_request *> handles;
        handles.reserve(count);
        for (std::size_t n = 0; n < count; n++) handles.push_back(all[n].request_);
        return handles;
    }
    struct tsumugi_request *request_ = nullptr;
};

// Waits until all of `count` requests have ended; those that own nothing are left out. If
// some have failed, throws the error of the first, when all have ended. Blocks.
inline std::vector<received> wait_all(request *all, std::size_t count)
{
    auto handles = request::handles(all, count);
    std::vector<struct tsumugi_received> what(count);
    int code = detail::sleeping(tsumugi_request_wait_all, handles.data(), count, what.data(),
                                nullptr);
    for (std::size_t n = 0; n < count; n++) all[n].request_ = handles[n];
    check(code);
    return {what.begin(), what.end()};
}
inline std::vector<received> wait_all(std::vector<request> &all)
{
    return wait_all(all.data(), all.size());
}

// Waits until one of `count` requests has ended, and returns its index. Blocks.
inline std::size_t wait_any(request *all, std::size_t count, received *what = nullptr)
{
    auto handles = request::handles(all, count);
    struct tsumugi_received got = {};
    std::size_t index = 0;
    int code = detail::sleeping(tsumugi_request_wait_any, handles.data(), count, &index, &got);
    for (std::size_t n = 0; n < count; n++) all[n].request_ = handles[n];
    check(code);
    if (what != nullptr) *what = got;
    return index;
}
inline std::size_t wait_any(std::vector<request> &all, received *what = nullptr)
{
    return wait_any(all.data(), all.size(), what);
}

} // namespace tsumugi

#endif
