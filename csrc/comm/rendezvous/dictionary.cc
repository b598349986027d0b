#include "csrc/comm/rendezvous/dictionary.h"

#include <charconv>

#include "csrc/comm/rendezvous/entry.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kMostBytes = 256 * kMiB;
constexpr std::size_t kMostKeys = 1'000'000;

}  // namespace

Status Dictionary::set(const std::string& key, std::string_view value) {
    PCCL_TRY(check_entry(key, value));
    const auto found = entries_.find(key);
    const bool is_new = found == entries_.end();
    const std::size_t freed = is_new ? 0 : found->second.size();
    const std::size_t taken = (is_new ? key.size() : 0) + value.size();
    if (bytes_ - freed + taken > kMostBytes || (is_new && entries_.size() >= kMostKeys))
        return Status::resource_exhausted(
            concat("the store is full (", entries_.size(), " keys, ", bytes_, " bytes)"));
    bytes_ = bytes_ - freed + taken;
    entries_[key] = value;
    return Status::ok();
}

const std::string* Dictionary::find(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
}

Result<std::int64_t> Dictionary::sum(const std::string& key, std::int64_t delta) const {
    std::int64_t value = 0;
    if (const std::string* const text = find(key)) {
        const char* const end = text->data() + text->size();
        const auto [stop, error] = std::from_chars(text->data(), end, value);
        if (error != std::errc{} || stop != end)
            return Status::invalid_argument(concat("\"", key, "\" is no counter"));
    }
    if (__builtin_add_overflow(value, delta, &value))
        return Status::invalid_argument(concat("the counter \"", key, "\" would overflow"));
    return value;
}

void Dictionary::remove(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    bytes_ -= found->first.size() + found->second.size();
    entries_.erase(found);
}

}  // namespace pccl::comm
