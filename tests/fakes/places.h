// SPDX-License-Identifier: Apache-2.0

// Where files are that tests read. The build writes places.cc, so that no flag of a compiler names
// a folder: clones share what they compile (ccache).
#pragma once

#include <string>
#include <string_view>

namespace pccl::fakes {

/// The path of a file of tests/, as "data/device_plans.txt".
std::string in_tests(std::string_view file);

/// The path of the library that stands in for NVML.
std::string fake_nvml();

/// The path of the library that stands in for rdma-core's; empty in builds without RDMA.
std::string fake_verbs();

/// The path of the strict net plug-in with the tables of all versions; libnccl-net-strict_v<N>.so
/// beside it has one.
std::string strict_net_plugin();

/// The path of PCCL's own net plug-in (plugins/nccl).
std::string own_net_plugin();

}  // namespace pccl::fakes
