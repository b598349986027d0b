#include "csrc/device/hints.h"

#include <algorithm>
#include <atomic>

namespace pccl::device {

abi::Hint& Hints::of(const HintKey& key) {
    auto use = std::ranges::find_if(
        uses_, [&](const Use& each) { return each.last != 0 && each.key == key; });
    const bool is_new = use == uses_.end();
    if (is_new) use = std::ranges::min_element(uses_, {}, &Use::last);
    *use = {.key = key, .last = ++now_};
    abi::Hint& hint = memory_[static_cast<std::size_t>(use - uses_.begin())];
    if (is_new) {
        for (std::uint64_t& input : hint.inputs)
            std::atomic_ref(input).store(0, std::memory_order_relaxed);
    }
    return hint;
}

std::uint64_t Hints::input_of(abi::Hint& hint, int peer) {
    std::uint64_t& input = hint.inputs[static_cast<std::size_t>(peer)];
    return std::atomic_ref(input).load(std::memory_order_relaxed);
}

}  // namespace pccl::device
