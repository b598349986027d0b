// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/gpu_path.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/memory_file.h"

namespace pccl::device {
namespace {

using kernels::GpuPath;

constexpr std::string_view kPathSubject = "path";
constexpr std::size_t kLongestReason = 512;

std::string path_text(const UsablePaths& paths) {
    ByteWriter out;
    out.status(paths.peers, kLongestReason);
    out.status(paths.host, kLongestReason);
    out.status(paths.nvlinks, kLongestReason);
    out.u32(paths.reached);
    return out.take();
}

Result<UsablePaths> paths_in(std::string_view text) {
    ByteReader in(text);
    UsablePaths paths;
    PCCL_TRY(in.status(paths.peers, kLongestReason));
    PCCL_TRY(in.status(paths.host, kLongestReason));
    PCCL_TRY(in.status(paths.nvlinks, kLongestReason));
    PCCL_TRY(in.u32(paths.reached));
    return paths;
}

/// Returns "rank 1: why not" of the first rank with an obstacle; empty where there is none.
std::string first_obstacle(std::span<const UsablePaths> ranks, Status UsablePaths::*path) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const Status& usable = ranks[rank].*path;
        if (!usable.is_ok()) return concat("rank ", rank, ": ", usable.message());
    }
    return {};
}

/// Returns the peers of `rank` that reach it and that it reaches.
RankBits linked_with(std::span<const UsablePaths> ranks, Rank rank) {
    RankBits linked = 0;
    for (Rank peer = 0; peer < static_cast<Rank>(ranks.size()); ++peer) {
        const bool is_mutual =
            has_rank(ranks[at(rank)].reached, peer) && has_rank(ranks[at(peer)].reached, rank);
        if (is_mutual && peer != rank) linked |= bit_of(peer);
    }
    return linked;
}

/// Calls check(one, other) for each pair of GPUs of this process until one fails.
template <typename Check>
Status check_pairs(int gpus, Check check) {
    for (int one = 0; one < gpus; ++one)
        for (int other = 0; other < gpus; ++other)
            if (one != other) PCCL_TRY(check(one, other));
    return Status::ok();
}

/// Checks whether all GPUs of this process reach each other.
Status check_reach(sys::cuda::Driver& driver, int gpus) {
    return check_pairs(gpus, [&](int one, int other) -> Status {
        PCCL_ASSIGN_OR_RETURN(const bool can_reach, driver.can_reach(one, other));
        if (can_reach) return Status::ok();
        return Status::unsupported(concat("GPU ", one, " does not reach GPU ", other));
    });
}

Status check_nvlinks(sys::cuda::Driver& driver, int gpus) {
    return check_pairs(gpus, [&](int one, int other) { return check_nvlink(driver, one, other); });
}

}  // namespace

UsablePaths paths_by(std::optional<bool> peer_access, std::optional<bool> host_kernels) {
    UsablePaths usable;
    if (!peer_access.value_or(true)) usable.peers = Status::unsupported("PCCL_GPU_PEER_ACCESS=0");
    if (!host_kernels.value_or(true)) usable.host = Status::unsupported("PCCL_GPU_HOST_KERNELS=0");
    return usable;
}

std::string_view place_of(GpuPath path) {
    switch (path) {
        case GpuPath::kHost:
            return "in host memory";
        case GpuPath::kPcie:
            return "in the GPUs' memory over PCIe";
        case GpuPath::kPeer:
            break;
    }
    return "in the GPUs' memory";
}

bool ChosenPath::links_any() const {
    return std::ranges::any_of(linked, [](RankBits peers) { return peers != 0; });
}

Result<ChosenPath> choose_path(std::span<const UsablePaths> ranks) {
    std::string no_peers = first_obstacle(ranks, &UsablePaths::peers);
    if (no_peers.empty()) {
        std::string no_nvlinks = first_obstacle(ranks, &UsablePaths::nvlinks);
        const GpuPath path = no_nvlinks.empty() ? GpuPath::kPeer : GpuPath::kPcie;
        return ChosenPath{path, std::move(no_nvlinks), {}};
    }
    const std::string no_host = first_obstacle(ranks, &UsablePaths::host);
    if (no_host.empty()) {
        ChosenPath chosen{GpuPath::kHost, std::move(no_peers), {}};
        for (Rank rank = 0; rank < static_cast<Rank>(ranks.size()); ++rank)
            chosen.linked.push_back(linked_with(ranks, rank));
        return chosen;
    }
    return Status::unsupported(
        concat(no_peers, "; kernels do not use host memory either: ", no_host));
}

Result<ChosenPath> agree_on_path(const DeviceRendezvous& rendezvous, const UsablePaths& own) {
    PCCL_TRY(rendezvous.publish(kPathSubject, path_text(own)));
    std::vector<UsablePaths> ranks;
    for (Rank rank = 0; rank < rendezvous.size(); ++rank) {
        PCCL_ASSIGN_OR_RETURN(const std::string published, rendezvous.receive(rank, kPathSubject));
        PCCL_ASSIGN_OR_RETURN(UsablePaths paths, paths_in(published));
        ranks.push_back(std::move(paths));
    }
    return choose_path(ranks);
}

Status check_nvlink(sys::cuda::Driver& driver, int device, int other) {
    PCCL_ASSIGN_OR_RETURN(const bool has_nvlink, driver.has_nvlink(device, other));
    if (has_nvlink) return Status::ok();
    return Status::unsupported(concat("GPU ", device, " reaches GPU ", other, " over PCIe"));
}

Status check_host_memory(sys::cuda::Driver& driver) {
    constexpr std::size_t kTried = 64 * kKiB;
    PCCL_ASSIGN_OR_RETURN(const UniqueFd file, sys::make_memory_file("pccl-gpu-trial", kTried));
    PCCL_ASSIGN_OR_RETURN(const auto mapping, driver.map_file(file.get(), kTried));
    return driver.unmap_file(mapping);
}

std::string describe_path(sys::cuda::Driver& driver, UsablePaths usable) {
    const auto ids = driver.bus_ids();
    if (!ids.is_ok() || ids->empty()) return {};
    const int gpus = static_cast<int>(ids->size());
    if (usable.peers.is_ok()) usable.peers = check_reach(driver, gpus);
    if (usable.peers.is_ok()) {
        const Status nvlinks = check_nvlinks(driver, gpus);
        if (nvlinks.is_ok()) return std::string(place_of(GpuPath::kPeer));
        return concat(place_of(GpuPath::kPcie), ": ", nvlinks.message());
    }
    if (usable.host.is_ok()) usable.host = driver.use(0);
    if (usable.host.is_ok()) usable.host = check_host_memory(driver);
    if (usable.host.is_ok()) return concat(place_of(GpuPath::kHost), ": ", usable.peers.message());
    return concat("nowhere: ", usable.peers.message(), "; ", usable.host.message());
}

}  // namespace pccl::device
