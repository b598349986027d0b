// The content of a store: texts and counters by key, bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "csrc/base/status.h"

namespace pccl::comm {

class Dictionary {
   public:
    /// Errors: kInvalidArgument (too long), kResourceExhausted (256 MiB or a million keys).
    Status set(const std::string& key, std::string_view value);
    /// Null when there is none; valid until the next change.
    [[nodiscard]] const std::string* find(const std::string& key) const;
    /// What the counter `key` would be after adding `delta`; a missing one is 0. Changes nothing.
    /// kInvalidArgument when the value is no number, or the sum does not fit.
    [[nodiscard]] Result<std::int64_t> sum(const std::string& key, std::int64_t delta) const;
    void remove(const std::string& key);

   private:
    std::unordered_map<std::string, std::string> entries_;
    std::size_t bytes_ = 0;
};

}  // namespace pccl::comm
