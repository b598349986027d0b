// SPDX-License-Identifier: Apache-2.0

// The rendezvous store: a small shared dictionary through which the ranks of a group find each
// other.
//
// Implementations: FileStore, TcpStore, and adaptors of torch's stores in torch/ and bindings/.
// Keys have at most 256 bytes, values at most 64 KiB. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"

namespace pccl::bootstrap {

/// Permitted content of a store when it is opened: none; or any, for groups, which separate their
/// incarnations (incarnation.h).
enum class StoreContent { kNone, kAny };

class Store {
   public:
    virtual ~Store() = default;
    virtual Status set(const std::string& key, const std::string& value) = 0;
    /// Waits until the key exists. kTimeout contains the key; the caller adds the rank that should
    /// have set it.
    virtual Result<std::string> get(const std::string& key, Deadline deadline) = 0;
    /// Adds to a counter that starts at 0 and returns its new value.
    virtual Result<std::int64_t> add(const std::string& key, std::int64_t delta) = 0;
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

}  // namespace pccl::bootstrap
