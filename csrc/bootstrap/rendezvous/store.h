// The rendezvous store: a small shared dictionary through which the ranks of a group find each
// other.
//
// Implementations: FileStore, TcpStore, and adaptors over torch's stores in torch/
// and bindings/. Keys are at most 256 bytes, values at most 64 KiB. Safe from one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"

namespace pccl::bootstrap {

/// What a store may hold, or may already be used for, when it is opened: nothing; or anything, for
/// groups, which keep their incarnations apart (incarnation.h).
enum class StoreContent { kNone, kAny };

class Store {
   public:
    virtual ~Store() = default;
    virtual Status set(const std::string& key, const std::string& value) = 0;
    /// Waits until the key exists. kTimeout names the key; the caller adds who should have set it.
    virtual Result<std::string> get(const std::string& key, Deadline deadline) = 0;
    /// Adds to a counter that starts at 0 and returns its new value.
    virtual Result<std::int64_t> add(const std::string& key, std::int64_t delta) = 0;
    virtual Status remove(const std::string& key) = 0;
    /// Connects anew to a store whose server has gone, as one that comes later, which may be empty.
    /// kUnavailable where that is of no use.
    virtual Status reopen(Deadline /*deadline*/) {
        return Status::unavailable("the store has no server that could come again");
    }
    /// For messages: "the store tcp://10.0.0.1:29500".
    [[nodiscard]] virtual std::string where() const { return "the rendezvous store"; }
    /// Returns the name or address of the host that serves it; empty where none does, or it is
    /// unknown.
    [[nodiscard]] virtual std::string server() const { return {}; }
};

}  // namespace pccl::bootstrap
