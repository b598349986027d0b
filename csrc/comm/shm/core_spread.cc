// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/shm/core_spread.h"

#include <array>

namespace pccl::comm {

std::optional<std::size_t> emptier_core(std::span<const std::uint32_t> cores, Rank self,
                                        const sys::CoreSet& allowed) {
    std::array<int, sys::CoreSet().size()> ranks{};
    for (const std::uint32_t core : cores)
        if (core < ranks.size()) ++ranks[core];
    const auto own = static_cast<std::size_t>(self);
    const std::uint32_t here = cores[own];
    if (here >= ranks.size()) return std::nullopt;
    for (const std::uint32_t core : cores.subspan(own + 1))
        if (core == here) return std::nullopt;
    std::size_t emptiest = here;
    for (std::size_t core = 0; core < ranks.size(); ++core)
        if (allowed[core] && ranks[core] < ranks[emptiest]) emptiest = core;
    if (ranks[here] < ranks[emptiest] + 2) return std::nullopt;
    return emptiest;
}

bool move_to_core(std::size_t core) {
    const sys::CoreSet before = sys::usable_cores();
    if (!before[core] || !sys::run_on(sys::CoreSet().set(core)).is_ok()) return false;
    return sys::run_on(before).is_ok();
}

}  // namespace pccl::comm
