// SPDX-License-Identifier: Apache-2.0

// One of the two processes that drive a plug-in: its calls, as NCCL makes them, with deadlines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "csrc/sys/net_plugin/library.h"
#include "csrc/sys/net_plugin/table.h"
#include "tests/netplugin/meeting.h"

namespace pccl::netplugin {

using sys::net_plugin::Code;
using sys::net_plugin::DeviceProperties;
using sys::net_plugin::GroupedRecv;
using sys::net_plugin::Table;

/// Memory at a multiple of 4 KiB.
class PageMemory {
   public:
    explicit PageMemory(std::size_t bytes);
    ~PageMemory();
    PageMemory(const PageMemory&) = delete;
    PageMemory& operator=(const PageMemory&) = delete;
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return bytes_; }
    /// Fills it with bytes that depend on `seed` and the position.
    void fill(unsigned seed, std::size_t bytes) const;
    /// Returns the number of the first byte that differs from fill(); `bytes`: none.
    [[nodiscard]] std::size_t first_wrong(unsigned seed, std::size_t bytes) const;

   private:
    std::byte* data_;
    std::size_t bytes_;
};

/// How a process uses the plug-in.
struct SideOptions {
    std::string plugin;
    int version = abi::net_plugin::kNewestVersion;  // the newest one to use
    double timeout_s = 30;                          // of each call that is repeated
};

/// Communicators of both directions.
struct Comms {
    void* send = nullptr;
    void* recv = nullptr;
};

struct Done {
    bool is_done = false;
    std::vector<int> sizes;  // -1 where the plug-in wrote none
};

/// A failure ends the process with status 1 and one line.
class Side {
   public:
    static constexpr int kReceiver = 0;
    static constexpr int kSender = 1;

    Side(const SideOptions& options, int role, std::unique_ptr<Meeting> meeting);
    ~Side();
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    [[nodiscard]] bool is_sender() const { return role_ == kSender; }
    [[nodiscard]] const char* role_name() const { return is_sender() ? "sender" : "receiver"; }
    [[nodiscard]] const Table& table() const { return *library_.table; }
    [[nodiscard]] double timeout_s() const { return timeout_s_; }
    [[nodiscard]] const DeviceProperties& device() const { return devices_.front(); }
    [[nodiscard]] const sys::net_plugin::Library& loaded() const { return library_; }

    /// Names what is tried, for messages.
    void begin(const std::string& name) { case_ = name; }
    [[noreturn]] void fail(const std::string& text) const;
    void expect(Code code, const char* call) const;
    /// Prints a line from one of the processes.
    void note(const std::string& text) const;

    /// Exchanges a word with the other process, which must do the same: a barrier.
    void meet() const;
    /// Makes a connection; returns this side's communicator.
    [[nodiscard]] void* connect() const;
    /// Makes a connection in each direction.
    [[nodiscard]] Comms connect_both() const;
    [[nodiscard]] void* reg(void* comm, const PageMemory& memory) const;
    void dereg(void* comm, void* mhandle) const {
        expect(table().dereg_mr(comm, mhandle), "deregMr");
    }
    void close(void* comm) const;
    void close_both(const Comms& comms) const;

    /// Repeats until the plug-in takes the request; returns it.
    [[nodiscard]] void* isend(void* comm, std::span<std::byte> bytes, int tag, void* mhandle) const;
    [[nodiscard]] void* irecv(void* comm, std::span<const GroupedRecv> recvs) const;
    /// Tries once; null where the plug-in wants another call, or fails.
    [[nodiscard]] void* try_isend(void* comm, std::span<std::byte> bytes, int tag,
                                  void* mhandle) const;
    /// Repeats until the request is done.
    [[nodiscard]] Done wait(void* request, std::size_t receives) const;
    /// Tries once; returns the result of the call.
    [[nodiscard]] Code test(void* request, Done& done) const;

   private:
    void send_word(const void* data, std::size_t bytes) const;
    void receive_word(void* data, std::size_t bytes) const;
    using Handle = std::array<std::byte, abi::net_plugin::kHandleBytes>;
    [[nodiscard]] void* listen(Handle& handle) const;

    int role_;
    double timeout_s_;
    std::unique_ptr<Meeting> meeting_;
    sys::net_plugin::Library library_;
    void* context_ = nullptr;
    std::vector<DeviceProperties> devices_;
    std::string case_ = "start";
};

}  // namespace pccl::netplugin
