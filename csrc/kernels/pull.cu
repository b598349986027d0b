// SPDX-License-Identifier: Apache-2.0

// Kernels before and after copies by copy engines. The host fixes the copies' addresses when it
// issues them, from cached pointers: the second kernel checks whether those were right.
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/epoch_scope.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

__global__ void __launch_bounds__(512, 1) begin_pull(const __grid_constant__ Pull pull) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(pull.team);
    if (scope.enter(pull.peer_pointers, addresses)) scope.exit(EpochScope::Stores::kNone);
    scope.end();
}

__device__ void cache_pointers(const Pull& pull, const EpochScope::Addresses& addresses) {
    const int peer = static_cast<int>(threadIdx.x);
    if (pull.cached_pointers == nullptr || blockIdx.x != 0 || peer >= pull.team.size) return;
    pull.cached_pointers->inputs[peer] = reinterpret_cast<std::uint64_t>(addresses.inputs[peer]);
}

__global__ void __launch_bounds__(512, 1) end_pull(const __grid_constant__ Pull pull) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(pull.team);
    const abi::DeviceTeam& team = pull.team;
    if (scope.enter(pull.peer_pointers, addresses)) {
        cache_pointers(pull, addresses);
        for (int step = 0; step < team.size; ++step) {
            const int peer = (team.rank + step) % team.size;
            const std::byte* const from = addresses.inputs[peer];
            if (from == pull.pulled[peer] || from == pull.outputs[peer]) continue;
            copy_bytes(grid_group(), from, pull.outputs[peer], pull.bytes[peer]);
        }
        scope.exit(EpochScope::Stores::kNone);
    }
    scope.end();
}

}  // namespace

Status launch_pull_begin(const Pull& pull, Stream stream) {
    return launch_kernel(begin_pull, pull, {.blocks = pull.plan.blocks > 0 ? 1 : 0, .threads = 32},
                         stream);
}

Status launch_pull_end(const Pull& pull, Stream stream) {
    return launch_kernel(end_pull, pull, pull.plan, stream);
}

}  // namespace pccl::kernels
