#include "csrc/p2p/path.h"

namespace pccl::p2p {
namespace {

std::string_view how(const Path& path, const Plan& plan) {
    if (!path.is_direct) return "by messages";
    const bool here = plan.local().memory().kind == abi::MemoryKind::kGpu;
    const bool there = plan.remote().descriptor.kind == abi::MemoryKind::kGpu;
    if (here && there) return "by CUDA IPC";
    if (here || there) return "through pinned memory";
    return plan.remote().is_mapped ? "mapped" : "by the kernel";
}

}  // namespace

runtime::SessionPath way_of(const Path& path, const Plan& plan) {
    return {.kind = to_string(path.kind), .how = how(path, plan)};
}

}  // namespace pccl::p2p
