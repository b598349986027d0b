// The rendezvous store: a small shared dictionary through which the ranks of a group find each
// other.
//
// Implementations: FileStore, TcpStore (rendezvous/), and adaptors over torch's stores in torch/
// and bindings/. Keys are at most 256 bytes, values at most 64 KiB. Safe from one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"

namespace pccl::comm {

class Store {
   public:
    virtual ~Store() = default;
    virtual Status set(const std::string& key, const std::string& value) = 0;
    /// Waits until the key exists. kTimeout names the key; the caller adds who should have set it.
    virtual Result<std::string> get(const std::string& key, Deadline deadline) = 0;
    /// Adds to a counter that starts at 0 and returns its new value.
    virtual Result<std::int64_t> add(const std::string& key, std::int64_t delta) = 0;
    virtual Status remove(const std::string& key) = 0;
    /// For messages: "the store tcp://10.0.0.1:29500".
    [[nodiscard]] virtual std::string where() const { return "the rendezvous store"; }
};

/// The same store with "<prefix>/" before every key.
[[nodiscard]] PCCL_API std::shared_ptr<Store> prefixed(std::shared_ptr<Store> store,
                                                       std::string prefix);

/// "tcp://host:port" (rank 0 listens there, "[::1]" for IPv6 addresses) or "file:///path" (a file
/// that must not exist before the job, on a disk that all ranks see). kInvalidArgument says what is
/// wrong with `url`.
[[nodiscard]] PCCL_API Result<std::shared_ptr<Store>> open_store(const std::string& url, Rank rank,
                                                                 int size, Deadline deadline);

}  // namespace pccl::comm
