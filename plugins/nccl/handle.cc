// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/handle.h"

#include <netinet/in.h>

#include <cstring>
#include <type_traits>

#include "csrc/base/text/text.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::nccl {
namespace {

constexpr std::array<char, 4> kHandleMagic{'P', 'C', 'N', 'P'};
constexpr std::uint8_t kHandleVersion = 2;

struct WireHandle {
    std::array<char, 4> magic;
    std::uint8_t version;
    std::uint8_t needs_secret;
    std::uint16_t ipv6;  // bit i: address i is one of IPv6
    std::int32_t rank;
    std::uint32_t count;  // of addresses
    transport::GroupId id;
    std::array<std::uint8_t, 8> key;
    std::array<std::uint8_t, 80> addresses;  // each: its bytes, and its port in network order
    std::uint64_t attempt;
};
static_assert(sizeof(WireHandle) == sizeof(HandleBytes) &&
              std::has_unique_object_representations_v<WireHandle>);

constexpr std::size_t kPortBytes = 2;
constexpr std::size_t kMostAddresses = 13;

sys::Address address_of(std::span<const std::uint8_t> bytes) {
    const auto host = bytes.first(bytes.size() - kPortBytes);
    std::uint16_t port = 0;
    std::memcpy(&port, host.data() + host.size(), sizeof port);
    const auto convert = [](const auto& raw) {
        auto address = sys::Address::from_raw(reinterpret_cast<const sockaddr*>(&raw), sizeof raw);
        return address.is_ok() ? *address : sys::Address();
    };
    if (host.size() == sizeof(in_addr)) {
        sockaddr_in raw{};
        raw.sin_family = AF_INET;
        raw.sin_port = port;
        std::memcpy(&raw.sin_addr, host.data(), host.size());
        return convert(raw);
    }
    sockaddr_in6 raw{};
    raw.sin6_family = AF_INET6;
    raw.sin6_port = port;
    std::memcpy(&raw.sin6_addr, host.data(), host.size());
    return convert(raw);
}

}  // namespace

HandleBytes Handle::encode() const {
    WireHandle wire{};
    wire.magic = kHandleMagic;
    wire.version = kHandleVersion;
    wire.needs_secret = needs_secret ? 1 : 0;
    wire.rank = rank;
    wire.id = id;
    wire.key = key;
    std::size_t used = 0;
    for (const sys::Address& address : addresses) {
        const auto host = address.ip_bytes();
        if (used + host.size() + kPortBytes > wire.addresses.size()) break;
        const std::uint16_t port = htons(address.port());
        std::memcpy(&wire.addresses[used], host.data(), host.size());
        std::memcpy(&wire.addresses[used + host.size()], &port, sizeof port);
        if (address.family() == AF_INET6)
            wire.ipv6 = static_cast<std::uint16_t>(wire.ipv6 | (1U << wire.count));
        used += host.size() + kPortBytes;
        ++wire.count;
    }
    HandleBytes bytes;
    std::memcpy(bytes.data(), &wire, sizeof wire);
    return bytes;
}

Result<Handle> Handle::decode(std::span<const std::byte, sizeof(HandleBytes)> bytes) {
    WireHandle wire;
    std::memcpy(&wire, bytes.data(), sizeof wire);
    if (wire.magic != kHandleMagic || wire.version != kHandleVersion)
        return Status::invalid_argument(
            "the handle is not one of PCCL's plug-in of this version: all ranks need the same one");
    const auto broken = Status::invalid_argument("the handle's bytes are damaged");
    if (wire.count == 0 || wire.count > kMostAddresses || wire.needs_secret > 1 ||
        wire.rank < kNoRank)
        return broken;
    Handle handle{
        .id = wire.id, .key = wire.key, .needs_secret = wire.needs_secret == 1, .rank = wire.rank};
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < wire.count; ++i) {
        const bool is_ipv6 = ((wire.ipv6 >> i) & 1U) != 0;
        const std::size_t size = (is_ipv6 ? sizeof(in6_addr) : sizeof(in_addr)) + kPortBytes;
        if (used + size > wire.addresses.size()) return broken;
        handle.addresses.push_back(address_of(std::span(wire.addresses).subspan(used, size)));
        if (handle.addresses.back().port() == 0) return broken;
        used += size;
    }
    return handle;
}

Result<transport::Secret> Handle::secret() const {
    PCCL_ASSIGN_OR_RETURN(const auto of_job, bootstrap::job_secret(id));
    if (of_job.has_value() == needs_secret)
        return needs_secret ? *of_job : sys::hmac_sha256(key, id);
    return Status::mismatch(
        rank, needs_secret
                  ? "the peer proves a secret: set PCCL_SECRET_FILE here, too"
                  : "the peer proves no secret: set PCCL_SECRET_FILE at all ranks, or at none");
}

std::uint64_t attempt_in(const void* handle) {
    std::uint64_t attempt = 0;
    std::memcpy(&attempt, static_cast<const std::byte*>(handle) + offsetof(WireHandle, attempt),
                sizeof attempt);
    return attempt;
}

void set_attempt(void* handle, std::uint64_t attempt) {
    std::memcpy(static_cast<std::byte*>(handle) + offsetof(WireHandle, attempt), &attempt,
                sizeof attempt);
}

}  // namespace pccl::nccl
