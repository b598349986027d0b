// SPDX-License-Identifier: Apache-2.0

// Store whose entries prove that their writer has a secret, for stores to which strangers can
// write.
//
// The proof binds an entry to its key, so that it is invalid elsewhere, and to the secret. A
// stranger can replay an earlier entry under its key. A reader that requires a fresh entry
// therefore checks for a nonce that it has made itself (`Endpoint::nonce`).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <pccl/store.h>
#include "csrc/sys/crypto/sha256.h"
#include "csrc/transport/transport.h"

namespace pccl::bootstrap {

class PCCL_API SealedStore final : public Store {
   public:
    SealedStore(std::shared_ptr<Store> store, const transport::Secret& secret);

    Status set(const std::string& key, const std::string& value) override;
    /// Returns kInvalidArgument for an entry that is not sealed under the secret.
    Result<std::string> get(const std::string& key, Deadline deadline) override;
    /// Returns kUnsupported, because a sum has no single author.
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Status remove(const std::string& key) override;
    Status reopen(Deadline deadline) override { return store_->reopen(deadline); }
    [[nodiscard]] std::string where() const override { return store_->where(); }
    [[nodiscard]] std::string server() const override { return store_->server(); }

    /// Returns the raw entry with its proof.
    [[nodiscard]] Result<std::string> entry(const std::string& key, Deadline deadline) {
        return store_->get(key, deadline);
    }

   private:
    [[nodiscard]] sys::Digest proof_of(std::string_view key, std::string_view value) const;

    const std::shared_ptr<Store> store_;
    const sys::Digest key_;
};

/// Returns the value of `key` without waiting and without checking its proof, to diagnose unusable
/// entries. Returns kTimeout where there is none.
[[nodiscard]] PCCL_API Result<std::string> unproven_value(Store& store, const std::string& key);

/// Checks a raw value of a store. Returns kInvalidArgument when it was set through a SealedStore,
/// by a rank with a PCCL_SECRET_FILE.
[[nodiscard]] PCCL_API Status check_unsealed(std::string_view entry);

}  // namespace pccl::bootstrap
