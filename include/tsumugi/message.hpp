// Messages between ranks, and the memory from which they are copied once.
#ifndef TSUMUGI_MESSAGE_HPP
#define TSUMUGI_MESSAGE_HPP

#include <tsumugi/job.hpp>
#include <tsumugi/request.hpp>

#include <new>

namespace tsumugi {

// In place of a source and of a tag: any.
constexpr std::int64_t any_source = TSUMUGI_ANY_SOURCE;
constexpr std::int64_t any_tag = TSUMUGI_ANY_TAG;

// Memory of this rank's partition for a container of the standard library: a message from
// there is copied once.
template <class T> struct allocator {
    using value_type = T;
    static_assert(alignof(T) <= 16, "blocks are aligned to 16 bytes");

    allocator() noexcept = default;
    template <class U> allocator(const allocator<U> &) noexcept {}
    T *allocate(std::size_t count)
    {
        std::size_t bytes;
        if (__builtin_mul_overflow(count, sizeof(T), &bytes)) throw std::bad_array_new_length();
        void *block = tsumugi_malloc(bytes);
        if (block == nullptr) throw std::bad_alloc();
        return static_cast<T *>(block);
    }
    void deallocate(T *block, std::size_t) noexcept { tsumugi_free(block); }
    template <class U> friend bool operator==(allocator, allocator<U>) noexcept { return true; }
    template <class U> friend bool operator!=(allocator, allocator<U>) noexcept { return false; }
};

// A message of any length, with its values.
template <class T> class message {
    static_assert(detail::is_plain<T>, "messages are bytes");

public:
    message() noexcept = default;
    message(message &&other) noexcept
        : what_(std::exchange(other.what_, {})), data_(std::move(other.data_))
    {
    }
    message &operator=(message &&other) noexcept
    {
        what_ = std::exchange(other.what_, {});
        data_ = std::move(other.data_);
        return *this;
    }

    std::uint32_t source() const noexcept { return what_.source; }
    std::uint32_t tag() const noexcept { return what_.tag; }
    std::size_t size() const noexcept { return what_.bytes / sizeof(T); }
    T *data() const noexcept { return static_cast<T *>(data_.get()); }
    T *begin() const noexcept { return data(); }
    T *end() const noexcept { return data() + size(); }
    T &operator[](std::size_t index) const noexcept { return data()[index]; }

private:
    friend class comm;
    message(void *data, received what) : what_(what), data_(data) { what_.count<T>(); }
    static void free(void *data) noexcept { tsumugi_free(data); }
    received what_;
    detail::owned<void, free> data_;
};

// A communicator: a message that is sent through it is received through the same one of
// another rank. Messages from one rank to another are received in the order in which they
// were sent, as far as they match the receives.
class comm {
public:
    // The one that exists from the start.
    explicit comm(const job &of)
    {
        struct tsumugi_comm *made = nullptr;
        check(tsumugi_comm_open(of.get(), &made));
        comm_.reset(made);
    }
    // A new one for a part of the program. Collective.
    comm duplicate() const
    {
        struct tsumugi_comm *made = nullptr;
        check(detail::sleeping(tsumugi_comm_duplicate, get(), &made));
        return comm(made);
    }

    // Returns when the values may be changed again. Blocks.
    template <class T>
    void send(std::uint32_t to, std::uint32_t tag, const T *from, std::size_t count) const
    {
        check(detail::sleeping(tsumugi_send, get(), to, tag, from, detail::bytes_of<T>(count)));
    }
    template <class T> void send(std::uint32_t to, std::uint32_t tag, const T &value) const
    {
        send(to, tag, &value, 1);
    }

    // Waits for a message and copies it to `into`, with room for `room` values. A longer one
    // is an error, and the room has its beginning. Blocks.
    template <class T>
    received recv(T *into, std::size_t room, std::int64_t source = any_source,
                  std::int64_t tag = any_tag) const
    {
        struct tsumugi_received what = {};
        check(detail::sleeping(tsumugi_recv, get(), source, tag, into,
                               detail::bytes_of<T>(room), &what));
        return what;
    }
    // Waits for one value; a message of another length is an error. Blocks.
    template <class T>
    T recv(std::int64_t source = any_source, std::int64_t tag = any_tag,
           received *what = nullptr) const
    {
        T value;
        received got = recv(&value, 1, source, tag);
        if (got.bytes != sizeof value)
            throw error(TSUMUGI_ERROR_LENGTH,
                        "a message of " + std::to_string(got.bytes) + " bytes from rank " +
                            std::to_string(got.source) + " with tag " + std::to_string(got.tag) +
                            " is no value of " + std::to_string(sizeof value) + " bytes");
        if (what != nullptr) *what = got;
        return value;
    }
    // Waits for a message of any length, of whole values. Blocks.
    template <class T>
    message<T> recv_whole(std::int64_t source = any_source, std::int64_t tag = any_tag) const
    {
        void *data = nullptr;
        struct tsumugi_received what = {};
        check(detail::sleeping(tsumugi_recv_whole, get(), source, tag, &data, &what));
        return message<T>(data, what);
    }
    // Sends and receives at the same time, so that ranks that exchange messages cannot
    // deadlock. The memories do not overlap. Blocks.
    template <class T, class U>
    received send_recv(std::uint32_t to, std::uint32_t send_tag, const T *from,
                       std::size_t count, std::int64_t source, std::int64_t recv_tag, U *into,
                       std::size_t room) const
    {
        struct tsumugi_received what = {};
        check(detail::sleeping(tsumugi_send_recv, get(), to, send_tag, from,
                               detail::bytes_of<T>(count), source, recv_tag, into,
                               detail::bytes_of<U>(room), &what));
        return what;
    }

    // Waits until there is a message that matches, without receiving it. Blocks.
    received probe(std::int64_t source = any_source, std::int64_t tag = any_tag) const
    {
        struct tsumugi_received found = {};
        check(detail::sleeping(tsumugi_probe, get(), source, tag, &found));
        return found;
    }
    // The message that matches, if there is one. Never waits.
    std::optional<received> try_probe(std::int64_t source = any_source,
                                      std::int64_t tag = any_tag) const
    {
        struct tsumugi_received found = {};
        bool is_there = false;
        check(tsumugi_try_probe(get(), source, tag, &is_there, &found));
        return is_there ? std::optional<received>(found) : std::nullopt;
    }

    // Begins to send values, which stay as they are until the request has ended.
    template <class T>
    request isend(std::uint32_t to, std::uint32_t tag, const T *from, std::size_t count) const
    {
        request begun;
        check(detail::sleeping(tsumugi_isend, get(), to, tag, from, detail::bytes_of<T>(count),
                               begun.place()));
        return begun;
    }
    // Begins to receive into memory that the program leaves alone until the request has
    // ended.
    template <class T>
    request irecv(T *into, std::size_t room, std::int64_t source = any_source,
                  std::int64_t tag = any_tag) const
    {
        request begun;
        check(detail::sleeping(tsumugi_irecv, get(), source, tag, into,
                               detail::bytes_of<T>(room), begun.place()));
        return begun;
    }
    struct tsumugi_comm *get() const noexcept { return comm_.get(); }

private:
    explicit comm(struct tsumugi_comm *made) noexcept : comm_(made) {}
    static void end(struct tsumugi_comm *made) noexcept
    {
        detail::ignore(tsumugi_comm_close(made));
    }
    detail::owned<struct tsumugi_comm, end> comm_;
};

} // namespace tsumugi

#endif
