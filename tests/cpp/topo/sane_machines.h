// SPDX-License-Identifier: Apache-2.0

// Machines with changes, and what the checks find in them.
#pragma once

#include "tests/cpp/topo/machines.h"

namespace pccl::topo {

inline Topology parse_topology(const std::string& text, const LoadOptions& options = {}) {
    auto topology = Topology::parse(text, "t.xml", options);
    EXPECT_TRUE(topology.is_ok()) << topology.status().to_string();
    return *topology;
}

inline std::string replaced(std::string text, const std::string& old, const std::string& now,
                            int occurrence = 0) {
    std::size_t place = text.find(old);
    for (; occurrence > 0; --occurrence) place = text.find(old, place + 1);
    EXPECT_NE(place, std::string::npos) << old;
    return text.replace(place, old.size(), now);
}

inline const Warning& warning(const Topology& topology, std::string_view name) {
    for (const Warning& warning : topology.warnings())
        if (warning.name == name) return warning;
    static const Warning none;
    ADD_FAILURE() << "no warning " << name;
    return none;
}

inline double width(const Topology& topology, std::string_view from, std::string_view to) {
    return topology.paths().path(topology.graph().find(from), topology.graph().find(to)).bandwidth;
}

}  // namespace pccl::topo
