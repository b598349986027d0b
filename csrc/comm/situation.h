// How a rank fares in a group, as it tells another that asks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"

namespace pccl::comm {

struct PCCL_API Situation {
    Status broken{};              // why the group cannot be used there; ok while it can
    std::uint64_t sequence = 0;   // collectives submitted so far
    std::string operation{};      // the collective that it is in; empty: none
    std::vector<Rank> awaited{};  // the ranks that this waits for

    /// At most transport::kLongestAnswer bytes: long texts and lists are cut.
    [[nodiscard]] std::string serialise() const;
    /// From bytes of any origin; kInvalidArgument names the place.
    static Result<Situation> parse(std::string_view bytes);
};

}  // namespace pccl::comm
