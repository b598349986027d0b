// The library's own stores, by URL.
#pragma once

#include <memory>
#include <string>

#include "csrc/bootstrap/rendezvous/store.h"

namespace pccl::bootstrap {

/// "tcp://host:port" (rank 0 listens there, "[::1]" for IPv6 addresses) or "file:///path" (a file
/// on a disk that all ranks see, that does not exist before, or is a store already where that may
/// hold anything). kInvalidArgument says what is wrong with `url`.
[[nodiscard]] PCCL_API Result<std::shared_ptr<Store>> open_store(
    const std::string& url, Rank rank, int size, Deadline deadline,
    StoreContent content = StoreContent::kNone);

}  // namespace pccl::bootstrap
