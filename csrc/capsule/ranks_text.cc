// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/ranks_text.h"

#include <cstddef>

#include "csrc/base/text.h"

namespace pccl::capsule {

std::string ranks_text(const std::vector<int>& ranks) {
    std::string text;
    for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
        for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
        append(text, concat(text.empty() ? "" : " ", ranks[first]));
        if (next - first > 1) append(text, concat("..", ranks[next - 1]));
    }
    return text;
}

}  // namespace pccl::capsule
