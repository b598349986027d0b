// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/launch_fingerprint.h"

#include "csrc/collective/fingerprint.h"

namespace pccl::device {
namespace {

/// Returns the digest with `wanted` mixed in, which is the same on all ranks.
std::uint64_t mixed_in(std::uint64_t digest, const DeviceLaunch& wanted) {
    if (wanted.plan) {
        digest = mixed(digest, 1 + static_cast<std::uint64_t>(wanted.plan->protocol));
        digest = mixed(digest, static_cast<std::uint64_t>(wanted.plan->blocks));
        digest = mixed(digest, static_cast<std::uint64_t>(wanted.plan->threads));
    }
    if (wanted.schedule != nullptr) digest = mixed(digest, wanted.schedule->digest);
    return digest;
}

}  // namespace

std::uint32_t launch_fingerprint(std::span<const Collective> collectives,
                                 const DeviceLaunch& wanted, std::uint64_t loaded) {
    constexpr std::uint32_t kUpperHalf = 0xFFFF0000;
    std::uint64_t digest = mixed_in(loaded, wanted);
    for (const Collective& collective : collectives)
        digest = mixed(digest, digest_of(header_of(signature_of(collective))));
    return static_cast<std::uint32_t>(spread(digest) >> 32U) & kUpperHalf;
}

}  // namespace pccl::device
