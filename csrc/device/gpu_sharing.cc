// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/gpu_sharing.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/abi/device_team.h"
#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::device {
namespace {

constexpr std::string_view kSubject = "seat";
constexpr std::uint32_t kMostProcessors = 1U << 16;  // far above any GPU's

std::string text_of(const GpuPlacement& placement) {
    ByteWriter out;
    out.raw(placement.gpu);
    out.u8(placement.has_mps ? 1 : 0);
    out.u8(placement.allows_time_slicing ? 1 : 0);
    out.u8(placement.allows_peer_access ? 1 : 0);
    out.u32(static_cast<std::uint32_t>(placement.multiprocessors));
    return out.take();
}

Result<GpuPlacement> placement_in(std::string_view text) {
    ByteReader in(text);
    GpuPlacement placement;
    PCCL_TRY(in.raw(placement.gpu));
    std::uint8_t flag = 0;
    PCCL_TRY(in.u8(flag));
    placement.has_mps = flag != 0;
    PCCL_TRY(in.u8(flag));
    placement.allows_time_slicing = flag != 0;
    PCCL_TRY(in.u8(flag));
    placement.allows_peer_access = flag != 0;
    std::uint32_t multiprocessors = 0;
    PCCL_TRY(in.u32(multiprocessors));
    placement.multiprocessors =
        static_cast<int>(std::min<std::uint32_t>(multiprocessors, kMostProcessors));
    return placement;
}

}  // namespace

Status check_placements(std::span<const GpuPlacement> placements) {
    if (std::ranges::any_of(placements, &GpuPlacement::allows_time_slicing)) return Status::ok();
    for (std::size_t one = 0; one < placements.size(); ++one) {
        for (std::size_t other = one + 1; other < placements.size(); ++other) {
            if (placements[one].gpu != placements[other].gpu) continue;
            if (placements[one].has_mps && placements[other].has_mps) continue;
            return Status::unsupported(concat(
                "ranks ", one, " and ", other,
                " share a GPU without MPS, where kernels take "
                "turns and each message would wait for time slices: start MPS before the "
                "ranks (nvidia-cuda-mps-control -d), give each rank a GPU of its own, or set "
                "PCCL_GPU_PEER_ACCESS=1 to wait"));
        }
    }
    return Status::ok();
}

int resident_blocks(std::span<const GpuPlacement> placements) {
    int blocks = abi::kMostBlocks;
    for (const GpuPlacement& placement : placements) {
        const auto ranks =
            static_cast<int>(std::ranges::count(placements, placement.gpu, &GpuPlacement::gpu));
        if (ranks > 1) blocks = std::min(blocks, placement.multiprocessors / ranks);
    }
    return std::max(blocks, 1);
}

Result<std::vector<GpuPlacement>> agree_on_placements(const DeviceRendezvous& rendezvous,
                                                      const GpuPlacement& own) {
    PCCL_TRY(rendezvous.publish(kSubject, text_of(own)));
    std::vector<GpuPlacement> placements;
    for (Rank rank = 0; rank < rendezvous.size(); ++rank) {
        PCCL_ASSIGN_OR_RETURN(const std::string published, rendezvous.receive(rank, kSubject));
        PCCL_ASSIGN_OR_RETURN(const GpuPlacement placement, placement_in(published));
        placements.push_back(placement);
    }
    PCCL_TRY(check_placements(placements));
    return placements;
}

}  // namespace pccl::device
