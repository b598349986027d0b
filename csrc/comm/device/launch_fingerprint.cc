#include "csrc/comm/device/launch_fingerprint.h"

#include "csrc/comm/fingerprint.h"

namespace pccl::comm {
namespace {

/// What all ranks want of a launch, if they want anything.
std::uint64_t digest_of(const DeviceLaunch& wanted) {
    std::uint64_t digest = 0;
    if (wanted.plan) {
        digest = mixed(digest, 1 + static_cast<std::uint64_t>(wanted.plan->protocol));
        digest = mixed(digest, static_cast<std::uint64_t>(wanted.plan->blocks));
        digest = mixed(digest, static_cast<std::uint64_t>(wanted.plan->threads));
    }
    if (wanted.algorithm) digest = mixed(digest, 1 + static_cast<std::uint64_t>(*wanted.algorithm));
    return digest;
}

abi::CollectiveHeader header_of(const Collective& collective, bool has_private_lengths) {
    abi::CollectiveHeader header = header_of(signature_of(collective));
    // Of an even all_to_all all ranks know it, though it is no part of the signature.
    header.count = has_private_lengths ? 0 : longest(collective);
    return header;
}

}  // namespace

std::uint32_t launch_fingerprint(std::span<const Collective> collectives,
                                 const DeviceLaunch& wanted) {
    constexpr std::uint32_t kUpperHalf = 0xFFFF0000;
    std::uint64_t digest = digest_of(wanted);
    for (const Collective& collective : collectives) {
        const bool is_private = has_private_lengths(collective, wanted);
        digest = mixed(digest, digest_of(header_of(collective, is_private)));
        digest = mixed(digest, is_private ? 1 : 0);
    }
    return static_cast<std::uint32_t>(digest >> 32U) & kUpperHalf;
}

}  // namespace pccl::comm
