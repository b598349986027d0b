// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/prefix_store.h"

namespace pccl::bootstrap {

Status PrefixStore::set(const std::string& key, const std::string& value) {
    return store_->set(full(key), value);
}

Result<std::string> PrefixStore::get(const std::string& key, Deadline deadline) {
    return store_->get(full(key), deadline);
}

Result<std::int64_t> PrefixStore::add(const std::string& key, std::int64_t delta) {
    return store_->add(full(key), delta);
}

Status PrefixStore::remove(const std::string& key) { return store_->remove(full(key)); }

std::shared_ptr<Store> prefixed(std::shared_ptr<Store> store, std::string prefix) {
    return std::make_shared<PrefixStore>(std::move(store), std::move(prefix));
}

}  // namespace pccl::bootstrap
