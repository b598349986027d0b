// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/entry.h"

#include <charconv>

namespace pccl::bootstrap {

Result<std::int64_t> sum_of(std::string_view key, const std::string* text, std::int64_t delta) {
    std::int64_t value = 0;
    if (text != nullptr) {
        const char* const end = text->data() + text->size();
        const auto [stop, error] = std::from_chars(text->data(), end, value);
        if (error != std::errc{} || stop != end)
            return Status::invalid_argument(concat("\"", key, "\" is no counter"));
    }
    if (__builtin_add_overflow(value, delta, &value))
        return Status::invalid_argument(concat("the counter \"", key, "\" would overflow"));
    return value;
}

}  // namespace pccl::bootstrap
