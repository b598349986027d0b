// SPDX-License-Identifier: Apache-2.0

// The machines of tests/data/topology, loaded.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "csrc/sys/sysfs/file.h"
#include "csrc/topo/topology.h"
#include "tests/fakes/places.h"

namespace pccl::topo {

inline std::string data_path(const std::string& name) {
    return fakes::in_tests("data/topology/") + name;
}

inline std::string read_data(const std::string& name) {
    return sys::read_file(data_path(name), 1U << 24U).value();
}

/// Names of the files of a folder, in order.
inline std::vector<std::string> files_of(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(data_path(folder)))
        names.push_back(folder + "/" + entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

inline Topology load(const std::string& name, const LoadOptions& options = {}) {
    auto topology = Topology::load(data_path(name), options);
    EXPECT_TRUE(topology.is_ok()) << topology.status().to_string();
    return *topology;
}

inline std::vector<std::string> names_of(const Warnings& warnings) {
    std::vector<std::string> names;
    for (const Warning& warning : warnings) names.push_back(warning.name);
    return names;
}

}  // namespace pccl::topo
