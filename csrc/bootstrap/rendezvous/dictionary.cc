// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/dictionary.h"

#include "csrc/base/ids.h"
#include "csrc/bootstrap/rendezvous/entry.h"

namespace pccl::bootstrap {
namespace {

constexpr std::size_t kMostBytes = 256 * kMiB;
constexpr std::size_t kMostBytesOfOne = 64 * kMiB;
constexpr std::size_t kMostKeys = 1'000'000;

std::size_t size_of(const auto& entry) { return entry.first.size() + entry.second.value.size(); }

}  // namespace

Status Dictionary::set(const std::string& key, std::string_view value, Owner owner) {
    PCCL_TRY(check_entry(key, value));
    const auto found = entries_.find(key);
    const bool is_new = found == entries_.end();
    const std::size_t freed = is_new ? 0 : size_of(*found);
    const std::size_t taken = key.size() + value.size();
    if (bytes_ - freed + taken > kMostBytes || (is_new && entries_.size() >= kMostKeys))
        return Status::resource_exhausted(
            concat("the store is full (", entries_.size(), " keys, ", bytes_, " bytes)"));
    const std::size_t own = bytes_of(owner) - (is_new || found->second.owner != owner ? 0 : freed);
    if (owner != 0 && own + taken > kMostBytesOfOne)
        return Status::resource_exhausted(concat("the store has ", own, " bytes of this rank, and ",
                                                 "takes at most ", kMostBytesOfOne));
    if (!is_new) take_off(*found);
    bytes_ += taken;
    if (owner != 0) bytes_of_[owner] += taken;
    entries_[key] = {std::string(value), owner};
    return Status::ok();
}

std::size_t Dictionary::bytes_of(Owner owner) const {
    const auto found = bytes_of_.find(owner);
    return found == bytes_of_.end() ? 0 : found->second;
}

void Dictionary::take_off(const Entries::value_type& entry) {
    bytes_ -= size_of(entry);
    const auto of_owner = bytes_of_.find(entry.second.owner);
    if (of_owner == bytes_of_.end()) return;
    of_owner->second -= size_of(entry);
    if (of_owner->second == 0) bytes_of_.erase(of_owner);
}

const std::string* Dictionary::find(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second.value;
}

Result<std::int64_t> Dictionary::sum(const std::string& key, std::int64_t delta) const {
    return sum_of(key, find(key), delta);
}

void Dictionary::remove(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    take_off(*found);
    entries_.erase(found);
}

}  // namespace pccl::bootstrap
