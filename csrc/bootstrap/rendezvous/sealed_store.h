// A store whose entries prove that who set them has a secret: for stores to which strangers can
// write.
//
// An entry is bound to its key, so that it counts nowhere else, and to the secret. What was once
// set under both can be set again by a stranger: whoever needs to know that an entry is new looks
// for something in it that he has made up himself (`Endpoint::nonce`).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/sys/crypto/hmac.h"
#include "csrc/transport/transport.h"

namespace pccl::bootstrap {

class PCCL_API SealedStore final : public Store {
   public:
    SealedStore(std::shared_ptr<Store> store, const transport::Secret& secret);

    Status set(const std::string& key, const std::string& value) override;
    /// kInvalidArgument for an entry that is not sealed under the secret.
    Result<std::string> get(const std::string& key, Deadline deadline) override;
    /// kUnsupported: a sum has no author.
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Status remove(const std::string& key) override;
    Status reopen(Deadline deadline) override { return store_->reopen(deadline); }
    [[nodiscard]] std::string where() const override { return store_->where(); }
    [[nodiscard]] std::string server() const override { return store_->server(); }

    /// The entry as it is in the store, with its proof.
    [[nodiscard]] Result<std::string> entry(const std::string& key, Deadline deadline) {
        return store_->get(key, deadline);
    }

   private:
    [[nodiscard]] sys::Digest proof_of(std::string_view key, std::string_view value) const;

    const std::shared_ptr<Store> store_;
    const sys::Digest key_;
};

/// What is set for `key`, at once, whether it proves a secret or not: for looking at what cannot be
/// used. kTimeout where there is nothing.
[[nodiscard]] PCCL_API Result<std::string> unproven_value(Store& store, const std::string& key);

/// Of what was got from a store as it is: kInvalidArgument when it had been set through a
/// SealedStore, by a rank with a PCCL_SECRET_FILE.
[[nodiscard]] PCCL_API Status check_unsealed(std::string_view entry);

}  // namespace pccl::bootstrap
