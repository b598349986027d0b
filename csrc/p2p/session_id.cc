// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <pccl/memory.h>
#include "csrc/base/text/text.h"

namespace pccl::p2p {

Status check_name(std::string_view name) {
    const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
    if (!name.empty() && name.size() <= SessionId::kLongestName &&
        std::ranges::all_of(name, is_plain))
        return Status::ok();
    return Status::invalid_argument(concat("a session's name has 1 to ", SessionId::kLongestName,
                                           " printable characters without blanks, not ",
                                           name.size(), " of any kind"));
}

}  // namespace pccl::p2p
