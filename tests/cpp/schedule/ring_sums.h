// SPDX-License-Identifier: Apache-2.0

// A ring whose sums show, in their last bits, in which order they were added, and what they must
// be.
#pragma once

#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "csrc/base/assert.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/verified_source.h"

namespace pccl::schedule::testing {

/// An all_reduce of one chunk for each rank.
inline SourcePtr lone_ring(int ranks) {
    Schedule made = generate("ring", {.ranks = ranks, .chunks = ranks, .slots = 2}).value();
    made.name = "lone_ring";
    return source_of(std::move(made)).value();
}

inline std::shared_ptr<const Catalogue> with_lone_ring(int ranks) {
    auto catalogue = std::make_shared<Catalogue>(*built_in());
    const Status added = catalogue->add(lone_ring(ranks));
    PCCL_ASSERT(added.is_ok());
    return catalogue;
}

/// Of magnitudes so different that each order of adding has a sum of its own, mostly.
inline std::vector<float> floats_of(Rank rank, std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto random =
            static_cast<std::uint32_t>((i * 16 + static_cast<std::size_t>(rank)) * 2'654'435'761U);
        values[i] = static_cast<float>(random >> 8) / static_cast<float>(1U << (random % 8));
    }
    return values;
}

/// Chunk c is added up from rank c+1 on, round to rank c (Patarasu and Yuan, 2009). It begins at a
/// multiple of 128 bytes of the whole vector, however the vector is cut into windows.
inline std::vector<float> ring_sums(int ranks, std::size_t count) {
    std::vector<std::vector<float>> of_ranks;
    for (Rank rank = 0; rank < ranks; ++rank) of_ranks.push_back(floats_of(rank, count));
    const auto parts = static_cast<std::size_t>(ranks);
    const std::size_t chunk = ((count + parts - 1) / parts + 31) / 32 * 32;
    std::vector<float> sums(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = i / chunk + 1;
        sums[i] = of_ranks[first % parts][i];
        for (std::size_t next = first + 1; next < first + parts; ++next)
            sums[i] += of_ranks[next % parts][i];
    }
    return sums;
}

}  // namespace pccl::schedule::testing
