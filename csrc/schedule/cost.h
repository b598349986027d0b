// What an algorithm costs, in closed form: what the selector multiplies with link constants.
#pragma once

#include <cstddef>

#include "csrc/schedule/generators.h"

namespace pccl::schedule {

/// Along the critical path of one run; "busiest" is the rank with most.
struct Cost {
    double rounds = 0;         // messages that wait for one another
    double messages = 0;       // sent and received by the busiest rank
    double bytes_sent = 0;     // by the busiest rank
    double bytes_reduced = 0;  // by the busiest rank
};

/// `block_bytes` is the length of one block (schedule.h); the algorithm must make shape.kind.
[[nodiscard]] PCCL_API Cost cost(Algorithm algorithm, const Shape& shape, std::size_t block_bytes);

}  // namespace pccl::schedule
