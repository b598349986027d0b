// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/netplugin/comms.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/fakes/netplugin/rules.h"

namespace pccl::fakes::netplugin {
namespace {

constexpr std::size_t kSlowBytes = 1024;
constexpr std::uint64_t kMagic = 0x70636c6e65743631;

/// What a handle holds; most of its bytes stay unused.
struct HandleBytes {
    std::uint64_t magic;
    std::uint64_t nonce;
    Comm* connecting;  // where a connect() has begun
    std::uint16_t port;
    std::int16_t rail;  // -1: unknown
};

HandleBytes read_handle(const void* handle) {
    HandleBytes bytes{};
    std::memcpy(&bytes, handle, sizeof bytes);
    return bytes;
}

int make_socket() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int one = 1;
    if (fd >= 0) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Comm::~Comm() {
    for (Registration* each : memory) delete each;
    if (accepted >= 0) ::close(accepted);
    if (fd >= 0) ::close(fd);
}

Engine& Engine::of_process() {
    static auto* const engine = new Engine;
    return *engine;
}

Code Engine::violate(const std::string& what) {
    ++violations_;
    if (logger_ != nullptr)
        logger_(net::LogLevel::kWarn, net::kLogNet, __FILE__, __LINE__, "violation: %s",
                what.c_str());
    return Code::kInternalError;
}

long Engine::communicators() {
    const std::lock_guard lock(mutex_);
    return static_cast<long>(comms_.size());
}

long Engine::sent(int device) {
    const std::lock_guard lock(mutex_);
    return sent_[device];
}

Comm* Engine::find(void* comm, Role role) {
    const auto found = comms_.find(comm);
    return found == comms_.end() || found->second->role != role ? nullptr : found->second.get();
}

Code Engine::forbid(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return violate(what);
}

Code Engine::join(const std::vector<int>& parts, int devices, int* joined) {
    const std::lock_guard lock(mutex_);
    const bool are_devices =
        std::ranges::all_of(parts, [&](int each) { return each >= 0 && each < devices; });
    if (parts.size() < 2 || !are_devices ||
        std::set(parts.begin(), parts.end()).size() != parts.size())
        return violate("makeVDevice joins other devices than two or more of the plug-in's");
    for (std::size_t i = 0; i < joined_.size(); ++i)
        if (joined_[i] == parts) {  // another start of the plug-in
            *joined = devices + static_cast<int>(i);
            return Code::kSuccess;
        }
    *joined = devices + static_cast<int>(joined_.size());
    joined_.push_back(parts);
    return Code::kSuccess;
}

std::vector<int> Engine::parts_of(int device, int devices) {
    const std::lock_guard lock(mutex_);
    if (device >= 0 && device < devices) return {device};
    const auto index = static_cast<std::size_t>(device - devices);
    return device < 0 || index >= joined_.size() ? std::vector<int>() : joined_[index];
}

Code Engine::expect(int peers, int flows_per_peer) {
    const std::lock_guard lock(mutex_);
    if (peers < 1 || flows_per_peer < 1) return violate("setNetAttr expects no traffic");
    return Code::kSuccess;
}

Code Engine::listen(void* handle, const Place& place, void** listen_comm) {
    const std::lock_guard lock(mutex_);
    auto comm = std::make_unique<Comm>(Role::kListen);
    comm->fd = make_socket();
    sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    if (comm->fd < 0 ||
        ::bind(comm->fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(comm->fd, 8) != 0 ||
        ::getsockname(comm->fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
        return Code::kSystemError;
    comm->nonce = ++last_nonce_ * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(::getpid());
    const HandleBytes bytes{kMagic, comm->nonce, nullptr, ntohs(address.sin_port),
                            static_cast<std::int16_t>(place.rail)};
    std::memcpy(handle, &bytes, sizeof bytes);
    *listen_comm = comm.get();
    comms_.emplace(comm.get(), std::move(comm));
    return Code::kSuccess;
}

Code Engine::connect(void* handle, const Place& place, void** send_comm) {
    const std::lock_guard lock(mutex_);
    HandleBytes bytes = read_handle(handle);
    if (bytes.magic != kMagic) return Code::kInvalidArgument;
    if (place.rail >= 0 && bytes.rail >= 0 && place.rail != bytes.rail)
        return violate("connect goes from one rail to another");
    if (bytes.connecting == nullptr) {
        auto comm = std::make_unique<Comm>(Role::kConnecting);
        comm->fd = make_socket();
        comm->nonce = bytes.nonce;
        comm->handle = handle;
        comm->device = place.device;
        bytes.connecting = comm.get();
        std::memcpy(handle, &bytes, sizeof bytes);
        comms_.emplace(comm.get(), std::move(comm));
    }
    Comm* const comm = find(bytes.connecting, Role::kConnecting);
    if (comm == nullptr || comm->handle != handle)
        return violate("connect is called with another buffer, or after its end");
    const sockaddr_in address = loopback(bytes.port);
    if (::connect(comm->fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno != EISCONN) {
        const bool is_pending = errno == EINPROGRESS || errno == EALREADY || would_block();
        return is_pending ? Code::kSuccess : Code::kRemoteError;
    }
    if (::send(comm->fd, &comm->nonce, sizeof comm->nonce, MSG_NOSIGNAL) !=
        static_cast<ssize_t>(sizeof comm->nonce))
        return Code::kRemoteError;
    comm->role = Role::kSend;
    *send_comm = comm;
    return Code::kSuccess;
}

Code Engine::accept(void* listen_comm, void** recv_comm) {
    const std::lock_guard lock(mutex_);
    Comm* const listener = find(listen_comm, Role::kListen);
    if (listener == nullptr) return violate("accept is called on no listening communicator");
    if (listener->accepted < 0)
        listener->accepted =
            ::accept4(listener->fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (listener->accepted < 0) return would_block() ? Code::kSuccess : Code::kSystemError;
    std::uint64_t nonce = 0;
    const ssize_t got = ::recv(listener->accepted, &nonce, sizeof nonce, 0);
    if (got < 0 && would_block()) return Code::kSuccess;
    const int fd = std::exchange(listener->accepted, -1);
    if (got != static_cast<ssize_t>(sizeof nonce) || nonce != listener->nonce) {
        ::close(fd);
        return Code::kSuccess;
    }
    auto comm = std::make_unique<Comm>(Role::kRecv);
    comm->fd = fd;
    *recv_comm = comm.get();
    comms_.emplace(comm.get(), std::move(comm));
    return Code::kSuccess;
}

Code Engine::reg_mr(void* comm, void* data, std::size_t bytes, int type, void** mhandle) {
    const std::lock_guard lock(mutex_);
    Comm* found = find(comm, Role::kSend);
    if (found == nullptr) found = find(comm, Role::kRecv);
    if (found == nullptr) return violate("regMr is called on no communicator");
    if (type != net::kPointerHost || bytes == 0) return violate("regMr takes host memory alone");
    if (Rules::of_process().number("align", 0) != 0 &&
        reinterpret_cast<std::uintptr_t>(data) % 4096 != 0)
        return violate("regMr takes memory at multiples of 4 KiB alone");
    auto* const memory = new Registration{static_cast<const std::byte*>(data), bytes};
    found->memory.insert(memory);
    *mhandle = memory;
    return Code::kSuccess;
}

Code Engine::dereg_mr(void* comm, void* mhandle) {
    const std::lock_guard lock(mutex_);
    const auto found = comms_.find(comm);
    auto* const memory = static_cast<Registration*>(mhandle);
    if (found == comms_.end() || found->second->memory.erase(memory) == 0)
        return violate("deregMr is called for memory of another communicator");
    delete memory;
    return Code::kSuccess;
}

bool Engine::covers(const Comm& comm, void* mhandle, const Entry& entry) {
    auto* const memory = static_cast<Registration*>(mhandle);
    return comm.memory.contains(memory) && entry.data >= memory->data &&
           entry.data + entry.bytes <= memory->data + memory->bytes;
}

Code Engine::start(Comm& comm, std::vector<Entry> entries, void** request, int most_requests) {
    if (std::cmp_greater_equal(comm.requests.size(), most_requests))
        return violate("a communicator has more requests than it may have");
    auto* const made = new Request{.comm = &comm, .entries = std::move(entries)};
    requests_.insert(made);
    comm.requests.push_back(made);
    *request = made;
    return Code::kSuccess;
}

Code Engine::isend(void* comm, Entry entry, void* mhandle, void** request, int most_requests) {
    const std::lock_guard lock(mutex_);
    Comm* const found = find(comm, Role::kSend);
    if (found == nullptr) return violate("isend is called on no sending communicator");
    if (!covers(*found, mhandle, entry)) return violate("isend of memory that is not registered");
    const Code started = start(*found, {entry}, request, most_requests);
    return started == Code::kSuccess ? send_some(*found) : started;
}

Code Engine::irecv(void* comm, std::vector<Entry> entries, void** mhandles, void** request,
                   int most_requests) {
    const std::lock_guard lock(mutex_);
    Comm* const found = find(comm, Role::kRecv);
    if (found == nullptr) return violate("irecv is called on no receiving communicator");
    for (std::size_t i = 0; i < entries.size(); ++i)
        if (!covers(*found, mhandles[i], entries[i]))
            return violate("irecv into memory that is not registered");
    return start(*found, std::move(entries), request, most_requests);
}

Code Engine::send_some(Comm& comm) {
    for (Request* const request : comm.requests) {
        Entry& entry = request->entries.front();
        if (entry.is_whole) continue;
        if (comm.header_moved == 0) comm.header = {.bytes = entry.bytes, .tag = entry.tag};
        while (comm.header_moved < sizeof comm.header) {
            const ssize_t sent =
                ::send(comm.fd, reinterpret_cast<const char*>(&comm.header) + comm.header_moved,
                       sizeof comm.header - comm.header_moved, MSG_NOSIGNAL | MSG_MORE);
            if (sent < 0) return would_block() ? Code::kSuccess : Code::kRemoteError;
            comm.header_moved += static_cast<std::size_t>(sent);
        }
        const bool is_slow = Rules::of_process().number("slow", -1) == comm.device;
        while (entry.moved < entry.bytes) {
            const std::size_t most = is_slow ? kSlowBytes : entry.bytes;
            const ssize_t sent = ::send(comm.fd, entry.data + entry.moved,
                                        std::min(entry.bytes - entry.moved, most), MSG_NOSIGNAL);
            if (sent < 0) return would_block() ? Code::kSuccess : Code::kRemoteError;
            entry.moved += static_cast<std::size_t>(sent);
            sent_[comm.device] += sent;
            if (is_slow && entry.moved < entry.bytes) return Code::kSuccess;
        }
        if (entry.bytes == 0) {  // pushes out what MSG_MORE holds back
            const int one = 1;
            ::setsockopt(comm.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        }
        entry.is_whole = true;
        comm.header_moved = 0;
    }
    return Code::kSuccess;
}

Code Engine::receive_header(Comm& comm, bool& is_there) {
    while (comm.header_moved < sizeof comm.header) {
        const ssize_t got =
            ::recv(comm.fd, reinterpret_cast<char*>(&comm.header) + comm.header_moved,
                   sizeof comm.header - comm.header_moved, 0);
        if (got < 0 && would_block()) return Code::kSuccess;
        if (got <= 0) return Code::kRemoteError;
        comm.header_moved += static_cast<std::size_t>(got);
    }
    is_there = true;
    return Code::kSuccess;
}

/// Returns the receive of the message whose header has come: the first with its tag.
Entry* Engine::match(Comm& comm) {
    for (Request* const request : comm.requests)
        for (Entry& entry : request->entries)
            if (!entry.is_whole && entry.tag == static_cast<int>(comm.header.tag)) return &entry;
    return nullptr;
}

Code Engine::receive_some(Comm& comm) {
    for (;;) {
        if (comm.requests.empty()) return Code::kSuccess;
        bool is_there = false;
        const Code code = receive_header(comm, is_there);
        if (code != Code::kSuccess || !is_there) return code;
        Entry* const entry = match(comm);
        if (entry == nullptr) return Code::kSuccess;
        if (comm.header.bytes > entry->bytes && !entry->is_matched)
            return violate("a send is longer than its receive");
        if (!std::exchange(entry->is_matched, true)) entry->bytes = comm.header.bytes;
        while (entry->moved < entry->bytes) {
            const ssize_t got =
                ::recv(comm.fd, entry->data + entry->moved, entry->bytes - entry->moved, 0);
            if (got < 0 && would_block()) return Code::kSuccess;
            if (got <= 0) return Code::kRemoteError;
            entry->moved += static_cast<std::size_t>(got);
        }
        entry->is_whole = true;
        comm.header_moved = 0;
    }
}

Code Engine::test(void* request, int* done, int* sizes) {
    const std::lock_guard lock(mutex_);
    auto* const found = static_cast<Request*>(request);
    if (!requests_.contains(found)) return violate("test of a request that is over");
    Comm& comm = *found->comm;
    if (comm.requests.front() != found) return violate("test of another than the oldest request");
    *done = 0;
    if (!comm.is_broken) {
        const Code code = comm.role == Role::kSend ? send_some(comm) : receive_some(comm);
        comm.is_broken = code == Code::kRemoteError;
        if (code != Code::kSuccess && code != Code::kRemoteError) return code;
    }
    const bool is_over = std::ranges::all_of(found->entries, &Entry::is_whole);
    if (!is_over) return comm.is_broken ? Code::kRemoteError : Code::kSuccess;
    Rules& rules = Rules::of_process();
    if (sizes != nullptr && rules.number("sizes", 1) != 0)
        for (std::size_t i = 0; i < found->entries.size(); ++i)
            sizes[i] = static_cast<int>(found->entries[i].bytes) +
                       static_cast<int>(rules.number("lie", 0));
    *done = 1;
    comm.requests.pop_front();
    requests_.erase(found);
    delete found;
    return Code::kSuccess;
}

Code Engine::close(void* comm, Role role) {
    const std::lock_guard lock(mutex_);
    if (find(comm, role) == nullptr) return violate("a communicator is closed that is none");
    const auto found = comms_.find(comm);
    for (Request* const request : found->second->requests) {
        requests_.erase(request);
        delete request;
    }
    comms_.erase(found);
    return Code::kSuccess;
}

}  // namespace pccl::fakes::netplugin
