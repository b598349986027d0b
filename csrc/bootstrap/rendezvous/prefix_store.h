// SPDX-License-Identifier: Apache-2.0

// Part of a store: every key gets a prefix.
#pragma once

#include <memory>
#include <string>

#include <pccl/store.h>

namespace pccl::bootstrap {

class PrefixStore final : public Store {
   public:
    PrefixStore(std::shared_ptr<Store> store, std::string prefix)
        : store_(std::move(store)), prefix_(std::move(prefix)) {}

    Status set(const std::string& key, const std::string& value) override;
    Result<std::string> get(const std::string& key, Deadline deadline) override;
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Status remove(const std::string& key) override;
    Status reopen(Deadline deadline) override { return store_->reopen(deadline); }
    [[nodiscard]] std::string where() const override { return store_->where(); }
    [[nodiscard]] std::string server() const override { return store_->server(); }

   private:
    [[nodiscard]] std::string full(const std::string& key) const { return prefix_ + "/" + key; }

    std::shared_ptr<Store> store_;
    std::string prefix_;
};

/// Returns a view of the store with "<prefix>/" before every key.
[[nodiscard]] PCCL_API std::shared_ptr<Store> prefixed(std::shared_ptr<Store> store,
                                                       std::string prefix);

}  // namespace pccl::bootstrap
