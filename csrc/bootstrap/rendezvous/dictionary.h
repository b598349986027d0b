// The content of a store: texts and counters by key, bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "csrc/base/status.h"

namespace pccl::bootstrap {

class Dictionary {
   public:
    /// Who has set an entry last; 0: nobody in particular.
    using Owner = std::uint64_t;

    /// Errors: kInvalidArgument (too long), kResourceExhausted (256 MiB or a million keys in all,
    /// 64 MiB of one owner).
    Status set(const std::string& key, std::string_view value, Owner owner = 0);
    /// Null when there is none; valid until the next change.
    [[nodiscard]] const std::string* find(const std::string& key) const;
    /// What the counter `key` would be after adding `delta`; a missing one is 0. Changes nothing.
    /// kInvalidArgument when the value is no number, or the sum does not fit.
    [[nodiscard]] Result<std::int64_t> sum(const std::string& key, std::int64_t delta) const;
    void remove(const std::string& key);

   private:
    struct StoredValue {
        std::string value;
        Owner owner = 0;
    };
    using Entries = std::unordered_map<std::string, StoredValue>;
    [[nodiscard]] std::size_t bytes_of(Owner owner) const;
    /// From what is counted.
    void take_off(const Entries::value_type& entry);

    Entries entries_;
    std::size_t bytes_ = 0;
    std::unordered_map<Owner, std::size_t> bytes_of_;  // without 0; of those that have any
};

}  // namespace pccl::bootstrap
