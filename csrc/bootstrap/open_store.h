// SPDX-License-Identifier: Apache-2.0

// The library's own stores, by URL.
#pragma once

#include <memory>
#include <string>

#include "csrc/bootstrap/rendezvous/store.h"

namespace pccl::bootstrap {

/// Opens "tcp://host:port" (rank 0 listens there; "[::1]" for IPv6 addresses) or "file:///path" (on
/// a file system that all ranks share; the file must not exist, or must be a store already if
/// `content` permits). Returns kInvalidArgument for a bad `url`.
[[nodiscard]] PCCL_API Result<std::shared_ptr<Store>> open_store(
    const std::string& url, Rank rank, int size, Deadline deadline,
    StoreContent content = StoreContent::kNone);

}  // namespace pccl::bootstrap
