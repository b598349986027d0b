// SPDX-License-Identifier: Apache-2.0

// Store that rank 0 serves at ports which the system has chosen.
//
// Rank 0 listens first, and publishes addresses and secret afterwards, through a key-value store of
// the job's launcher. No port is guessed, and no other process can take it in between.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/store.h>
#include "csrc/bootstrap/rendezvous/store_server.h"

namespace pccl::bootstrap {

class PCCL_API PublishedStore {
   public:
    /// Listens at each address of this host that other hosts may reach (PCCL_SOCKET_IFNAME), until
    /// its destruction. Clients prove the secret of PCCL_SECRET_FILE, or else `secret`, which has
    /// 32 bytes. Returns kUnavailable when no address can be used.
    static Result<std::unique_ptr<PublishedStore>> serve(std::string_view secret);
    ~PublishedStore();
    PublishedStore(const PublishedStore&) = delete;
    PublishedStore& operator=(const PublishedStore&) = delete;

    /// Returns, for example, {"10.0.0.1:40721", "[fd00::1]:41833"}; the best ones come first.
    [[nodiscard]] std::vector<std::string> addresses() const;

   private:
    explicit PublishedStore(std::unique_ptr<StoreServer> server);

    const std::unique_ptr<StoreServer> server_;
};

/// Joins the store that another process serves at these addresses, of which one is enough. Returns
/// kInvalidArgument for a malformed address or secret, kTimeout when none can be reached before
/// `deadline`.
[[nodiscard]] PCCL_API Result<std::shared_ptr<Store>> join_published_store(
    std::span<const std::string> addresses, std::string_view secret, Deadline deadline);

}  // namespace pccl::bootstrap
