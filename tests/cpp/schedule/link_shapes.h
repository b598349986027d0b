// SPDX-License-Identifier: Apache-2.0

// Networks whose links are given by a rule.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/schedule/generators/link_graph.h"

namespace pccl::schedule::testing {

using Links = std::vector<DirectedLink>;

inline Links both_ways(Links links) {
    const std::size_t count = links.size();
    for (std::size_t i = 0; i < count; ++i) links.push_back({links[i].to, links[i].from});
    return links;
}

/// Links to the right and down.
inline Links torus(int rows, int columns) {
    Links links;
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column) {
            const Rank here = row * columns + column;
            links.push_back({here, row * columns + (column + 1) % columns});
            links.push_back({here, (row + 1) % rows * columns + column});
        }
    return links;
}

}  // namespace pccl::schedule::testing
