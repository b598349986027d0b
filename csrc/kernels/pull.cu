// What surrounds copies by copy engines. Their addresses are fixed when they are issued, on the
// host, which knows the peers' only from hints: the second kernel sees whether the hints were
// right.
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/sync.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

__global__ void __launch_bounds__(512, 1) begin_pull(const __grid_constant__ Pull pull) {
    __shared__ Visit::Addresses addresses;
    const Visit visit(pull.team);
    if (visit.greet(pull.postings, addresses)) visit.depart(Visit::Stores::kNone);
    visit.end();
}

__device__ void leave_hint(const Pull& pull, const Visit::Addresses& addresses) {
    const int peer = static_cast<int>(threadIdx.x);
    if (pull.hint == nullptr || blockIdx.x != 0 || peer >= pull.team.size) return;
    pull.hint->inputs[peer] = reinterpret_cast<std::uint64_t>(addresses.inputs[peer]);
}

__global__ void __launch_bounds__(512, 1) end_pull(const __grid_constant__ Pull pull) {
    __shared__ Visit::Addresses addresses;
    const Visit visit(pull.team);
    const abi::DeviceTeam& team = pull.team;
    if (visit.greet(pull.postings, addresses)) {
        leave_hint(pull, addresses);
        for (int step = 0; step < team.size; ++step) {
            const int peer = (team.rank + step) % team.size;
            const std::byte* const from = addresses.inputs[peer];
            if (from == pull.pulled[peer] || from == pull.outputs[peer]) continue;
            copy_bytes(grid_crew(), from, pull.outputs[peer], pull.bytes[peer]);
        }
        visit.depart(Visit::Stores::kNone);
    }
    visit.end();
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
