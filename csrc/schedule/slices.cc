// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/slices.h"

#include <algorithm>
#include <limits>

#include "csrc/base/text/text.h"

namespace pccl::schedule {
namespace {

bool adjoin(const Slice& first, const Slice& then) {
    return first.buffer == then.buffer && first.count > 0 && then.count > 0 &&
           static_cast<long long>(first.offset) + first.count == then.offset &&
           static_cast<long long>(first.count) + then.count <= std::numeric_limits<int>::max();
}

}  // namespace

std::string_view to_string(Buffer buffer) {
    switch (buffer) {
        case Buffer::kInput:
            return "input";
        case Buffer::kOutput:
            return "output";
        case Buffer::kScratch:
            return "scratch";
    }
    return "unknown";
}

void Slices::add(const Slice& slice) {
    if (slice.count == 0) return;
    if (!list_.empty() && adjoin(list_.back(), slice)) {
        list_.back().count += slice.count;
        return;
    }
    list_.push_back(slice);
}

int Slices::count_all() const {
    long long chunks = 0;
    for (const Slice& slice : list_) chunks += slice.count;
    return static_cast<int>(std::min<long long>(chunks, std::numeric_limits<int>::max()));
}

std::string to_string(const Slices& slices) {
    std::string text;
    for (const Slice& slice : slices)
        text += concat(text.empty() ? "" : ", ", to_string(slice.buffer), "[", slice.offset, "+",
                       slice.count, "]");
    return text;
}

}  // namespace pccl::schedule
