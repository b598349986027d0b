// SPDX-License-Identifier: Apache-2.0

// Rendezvous store: a small shared dictionary through which the ranks of a group find each other.
//
//     PCCL_ASSIGN_OR_RETURN(
//         const auto store, open_store("tcp://10.0.0.1:29500", rank, size,
//                                      Deadline::after(std::chrono::seconds(30))));
//
// open_store() opens the library's own stores. Programs may implement Store over a dictionary that
// their ranks share already.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include <pccl/types.h>

namespace pccl {

/// Permitted content of a store when it is opened.
enum class StoreContent {
    kNone,  // the store must be new
    kAny,   // for groups, which separate their incarnations
};

/// Shared dictionary. Keys have at most 256 bytes, values at most 64 KiB. Not thread-safe: one call
/// at a time, from any thread. A group makes each call on a thread of its own, which it abandons
/// where the call does not return in time.
class Store {
   public:
    virtual ~Store() = default;
    /// Sets a key; replaces an earlier value.
    virtual Status set(const std::string& key, const std::string& value) = 0;
    /// Waits until the key exists, and returns its value. kTimeout contains the key; the caller
    /// adds the rank that should have set it.
    virtual Result<std::string> get(const std::string& key, Deadline deadline) = 0;
    /// Adds to a counter that starts at 0 and returns its new value.
    virtual Result<std::int64_t> add(const std::string& key, std::int64_t delta) = 0;
    /// Removes a key; returns ok where it does not exist.
    virtual Status remove(const std::string& key) = 0;
    /// Reconnects to a store whose server is gone. The new server may start with an empty store.
    /// Returns kUnavailable where a store has no server.
    virtual Status reopen(Deadline /*deadline*/) {
        return Status::unavailable("the store has no server that could come again");
    }
    /// Returns the location for error messages: "the store tcp://10.0.0.1:29500".
    [[nodiscard]] virtual std::string where() const { return "the rendezvous store"; }
    /// Returns the name or address of the host that serves it; empty where there is no server or it
    /// is unknown.
    [[nodiscard]] virtual std::string server() const { return {}; }
};

/// Opens "tcp://host:port" (rank 0 listens there; "[::1]" for IPv6 addresses) or "file:///path" (on
/// a file system that all ranks share; the file must not exist, or must be a store already if
/// `content` permits). All `size` ranks call it. Returns kInvalidArgument for a bad `url` or rank,
/// kTimeout where rank 0 does not listen before `deadline`, kUnavailable where the port or the file
/// cannot be used.
[[nodiscard]] PCCL_API Result<std::shared_ptr<Store>> open_store(
    const std::string& url, Rank rank, int size, Deadline deadline,
    StoreContent content = StoreContent::kNone);

}  // namespace pccl
