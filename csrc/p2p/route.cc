// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/route.h"

#include "csrc/p2p/registered_memory.h"

namespace pccl::p2p {
namespace {

std::string_view how(const Route& route, const Plan& plan) {
    if (!route.is_direct) return "by messages";
    const bool here = registered(plan.local()).memory().kind == abi::MemoryKind::kGpu;
    const bool there = plan.remote().is_gpu();
    if (here && there) return "by CUDA IPC";
    if (here || there) return "through pinned memory";
    return plan.remote().imported().is_mapped ? "mapped" : "by the kernel";
}

}  // namespace

runtime::SessionPath route_of(const Route& route, const Plan& plan) {
    return {.kind = to_string(route.kind), .how = how(route, plan)};
}

}  // namespace pccl::p2p
