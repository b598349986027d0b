// SPDX-License-Identifier: Apache-2.0

// Content of a store: texts and counters by key, bounded in size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include <pccl/status.h>

namespace pccl::bootstrap {

class Dictionary {
   public:
    /// The client that has set an entry last; 0: none in particular.
    using Owner = std::uint64_t;

    /// Sets an entry. Returns kInvalidArgument for one that is too long, kResourceExhausted beyond
    /// 256 MiB or a million keys in total, or 64 MiB of one owner.
    Status set(const std::string& key, std::string_view value, Owner owner = 0);
    /// Returns null when there is none; valid until the next change.
    [[nodiscard]] const std::string* find(const std::string& key) const;
    /// Returns the value of counter `key` plus `delta`; a missing counter is 0. Changes nothing.
    /// Returns kInvalidArgument when the value is no number, or the sum overflows.
    [[nodiscard]] Result<std::int64_t> sum(const std::string& key, std::int64_t delta) const;
    void remove(const std::string& key);

   private:
    struct StoredValue {
        std::string value;
        Owner owner = 0;
    };
    using Entries = std::unordered_map<std::string, StoredValue>;
    [[nodiscard]] std::size_t bytes_of(Owner owner) const;
    /// Subtracts an entry from the totals.
    void take_off(const Entries::value_type& entry);

    Entries entries_;
    std::size_t bytes_ = 0;
    std::unordered_map<Owner, std::size_t> bytes_of_;  // without owner 0; owners that have any
};

}  // namespace pccl::bootstrap
