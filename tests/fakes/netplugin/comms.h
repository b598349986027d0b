// SPDX-License-Identifier: Apache-2.0

// Communicators of the strict plug-in, over TCP on the loopback.
//
// A communicator is a socket; progress is made inside of isend, irecv and test alone. What the ABI
// forbids is a violation: it is counted, logged, and answered with kInternalError.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "csrc/abi/net_plugin/common.h"

namespace pccl::fakes::netplugin {

namespace net = abi::net_plugin;

using Code = abi::net_plugin::Result;

/// One receive of a group, or a send.
struct Entry {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    int tag = 0;
    std::size_t moved = 0;
    bool is_matched = false;
    bool is_whole = false;
};

struct Comm;

struct Request {
    Comm* comm = nullptr;
    std::vector<Entry> entries;
};

/// Device of a communicator.
struct Place {
    int device = 0;
    int rail = -1;  // -1: unknown
};

/// What precedes the bytes of a message.
struct Header {
    std::uint64_t bytes = 0;
    std::int64_t tag = 0;
};

struct Registration {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
};

enum class Role : std::uint8_t { kListen, kConnecting, kSend, kRecv };

struct Comm {
    explicit Comm(Role is) : role(is) {}
    ~Comm();
    Comm(const Comm&) = delete;
    Comm& operator=(const Comm&) = delete;

    Role role;
    int device = 0;  // of one that sends
    int fd = -1;
    std::uint64_t nonce = 0;
    int accepted = -1;                 // of a listener: a connection whose nonce is still to come
    const void* handle = nullptr;      // of a connecting one
    std::set<Registration*> memory{};  // registered
    std::deque<Request*> requests{};   // in flight, the oldest first
    Header header{};                   // of the message that moves
    std::size_t header_moved = 0;
    bool is_broken = false;
};

/// All communicators of this process; its functions exclude each other.
class Engine {
   public:
    static Engine& of_process();

    void log_to(abi::net_plugin::Logger logger) { logger_ = logger; }
    [[nodiscard]] long violations() const { return violations_; }
    [[nodiscard]] long communicators();
    /// Returns the bytes of messages that a device has sent.
    [[nodiscard]] long sent(int device);

    /// Makes a device that joins others, of which there are `devices`.
    Code join(const std::vector<int>& parts, int devices, int* joined);
    /// Returns the devices that a joined one consists of; empty: there is no such device.
    [[nodiscard]] std::vector<int> parts_of(int device, int devices);
    Code expect(int peers, int flows_per_peer);

    Code listen(void* handle, const Place& place, void** listen_comm);
    Code connect(void* handle, const Place& place, void** send_comm);
    /// Counts a call that the ABI forbids here.
    Code forbid(const std::string& what);
    Code accept(void* listen_comm, void** recv_comm);
    Code reg_mr(void* comm, void* data, std::size_t bytes, int type, void** mhandle);
    Code dereg_mr(void* comm, void* mhandle);
    Code isend(void* comm, Entry entry, void* mhandle, void** request, int most_requests);
    Code irecv(void* comm, std::vector<Entry> entries, void** mhandles, void** request,
               int most_requests);
    Code test(void* request, int* done, int* sizes);
    Code close(void* comm, Role role);

   private:
    Code violate(const std::string& what);
    Comm* find(void* comm, Role role);
    bool covers(const Comm& comm, void* mhandle, const Entry& entry);
    Code start(Comm& comm, std::vector<Entry> entries, void** request, int most_requests);
    Code send_some(Comm& comm);
    Code receive_some(Comm& comm);
    Code receive_header(Comm& comm, bool& is_there);
    static Entry* match(Comm& comm);

    std::mutex mutex_;
    std::map<void*, std::unique_ptr<Comm>> comms_;
    std::set<Request*> requests_;
    std::map<int, long> sent_;              // bytes, by device
    std::vector<std::vector<int>> joined_;  // devices of each joined one
    abi::net_plugin::Logger logger_ = nullptr;
    long violations_ = 0;
    std::uint64_t last_nonce_ = 0;
};

}  // namespace pccl::fakes::netplugin
