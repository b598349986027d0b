// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/memory_descriptor.h"

#include <algorithm>
#include <limits>

#include "csrc/base/bytes.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"

namespace pccl::transport {
namespace {

constexpr std::uint16_t kMagic = 0x3E4D;
constexpr std::uint16_t kMagicOfVersion1 = 0x3E40;  // version 1 had no number
constexpr std::size_t kKeyHead = 2;

std::string_view keys_of(const abi::MemoryDescriptor& memory) {
    return {reinterpret_cast<const char*>(memory.keys.data()),
            std::min<std::size_t>(memory.key_bytes, abi::kMemoryKeyBytes)};
}

std::uint32_t checksum(std::string_view bytes) {
    Digest digest;
    digest.add(bytes);
    return digest.checksum();
}

Status other_version(std::uint16_t version) {
    return Status::unsupported(concat("a memory descriptor of version ", version,
                                      "; this library reads version ", abi::kMemoryVersion,
                                      ": run one version on all ranks"));
}

/// Key at the front of `rest`, which its reader removes.
struct TransportKey {
    std::uint8_t transport = 0;
    std::string_view bytes;
};
Result<TransportKey> next_key(std::string_view& rest) {
    if (rest.size() < kKeyHead) return Status::invalid_argument("a key without a length");
    TransportKey key{.transport = static_cast<std::uint8_t>(rest[0]), .bytes = {}};
    const auto length = static_cast<std::size_t>(static_cast<std::uint8_t>(rest[1]));
    rest.remove_prefix(kKeyHead);
    if (key.transport >= kTransportKinds)
        return Status::invalid_argument(concat("a key of unknown transport ", key.transport));
    if (length > rest.size())
        return Status::invalid_argument(
            concat("a key of ", length, " bytes where ", rest.size(), " are left"));
    key.bytes = rest.substr(0, length);
    rest.remove_prefix(length);
    return key;
}

Status check_keys(const abi::MemoryDescriptor& memory) {
    std::string_view rest = keys_of(memory);
    TransportFlags seen;
    while (!rest.empty()) {
        PCCL_ASSIGN_OR_RETURN(const TransportKey key, next_key(rest));
        const auto kind = static_cast<TransportKind>(key.transport);
        if (seen.has(kind))
            return Status::invalid_argument(concat("two keys of transport ", to_string(kind)));
        seen = seen | kind;
    }
    return Status::ok();
}

Status check(const abi::MemoryDescriptor& memory) {
    if (memory.nonce == 0) return Status::invalid_argument("its nonce is 0");
    if (memory.bytes > std::numeric_limits<std::uint64_t>::max() / 2)
        return Status::invalid_argument(concat("there is no memory of ", memory.bytes, " bytes"));
    if (static_cast<int>(memory.kind) >= abi::kMemoryKinds)
        return Status::invalid_argument(
            concat("unknown kind of memory ", static_cast<int>(memory.kind)));
    return check_keys(memory);
}

Status read(ByteReader& in, abi::MemoryDescriptor& memory) {
    std::uint8_t kind = 0;
    std::uint32_t sum = 0;
    PCCL_TRY(in.u64(memory.id));
    PCCL_TRY(in.u64(memory.nonce));
    PCCL_TRY(in.u64(memory.bytes));
    PCCL_TRY(in.u8(kind));
    PCCL_TRY(in.u16(memory.key_bytes));
    if (memory.key_bytes > abi::kMemoryKeyBytes)
        return Status::invalid_argument(concat("its keys have ", memory.key_bytes, " of at most ",
                                               abi::kMemoryKeyBytes, " bytes"));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(memory.keys).first(memory.key_bytes))));
    PCCL_TRY(in.u32(sum));
    PCCL_TRY(in.finish());
    memory.kind = static_cast<abi::MemoryKind>(kind);
    return check(memory);
}

Status read_checked(std::string_view bytes, abi::MemoryDescriptor& memory) {
    ByteReader in(bytes);
    std::uint16_t magic = 0;
    std::uint16_t version = 0;
    PCCL_TRY(in.u16(magic));
    if (magic == kMagicOfVersion1) return other_version(1);
    if (magic != kMagic) return Status::invalid_argument("it does not start like one");
    PCCL_TRY(in.u16(version));
    if (version != abi::kMemoryVersion) return other_version(version);
    PCCL_TRY(read(in, memory));
    ByteWriter sum;
    const std::size_t summed = bytes.size() - sizeof(std::uint32_t);
    sum.u32(checksum(bytes.substr(0, summed)));
    if (sum.take() == bytes.substr(summed)) return Status::ok();
    return Status::invalid_argument("its checksum is wrong: it was damaged on its way");
}

}  // namespace

std::string serialise(const abi::MemoryDescriptor& memory) {
    ByteWriter out;
    out.u16(kMagic);
    out.u16(abi::kMemoryVersion);
    out.u64(memory.id);
    out.u64(memory.nonce);
    out.u64(memory.bytes);
    out.u8(static_cast<std::uint8_t>(memory.kind));
    out.u16(memory.key_bytes);
    out.raw(std::as_bytes(std::span(memory.keys).first(memory.key_bytes)));
    std::string bytes = out.take();
    out.u32(checksum(bytes));
    return bytes + out.take();
}

Result<abi::MemoryDescriptor> parse_memory_descriptor(std::string_view bytes) {
    abi::MemoryDescriptor memory{};
    if (const Status status = read_checked(bytes, memory); !status.is_ok())
        return status.with_context("a memory descriptor is not readable");
    return memory;
}

std::optional<std::string_view> key_of(const abi::MemoryDescriptor& memory, TransportKind kind) {
    std::string_view rest = keys_of(memory);
    while (!rest.empty()) {
        const auto key = next_key(rest);
        if (!key.is_ok()) return std::nullopt;
        if (key->transport == static_cast<std::uint8_t>(kind)) return key->bytes;
    }
    return std::nullopt;
}

Status add_key(abi::MemoryDescriptor& memory, TransportKind kind, std::string_view key) {
    if (key_of(memory, kind))
        return Status::invalid_argument(
            concat("the memory has a key of transport ", to_string(kind)));
    if (key.size() > std::numeric_limits<std::uint8_t>::max() ||
        memory.key_bytes + kKeyHead + key.size() > abi::kMemoryKeyBytes)
        return Status::resource_exhausted(concat("no room for a key of ", key.size(),
                                                 " bytes behind ", memory.key_bytes, " of ",
                                                 abi::kMemoryKeyBytes));
    const auto end = memory.keys.begin() + memory.key_bytes;
    end[0] = static_cast<std::uint8_t>(kind);
    end[1] = static_cast<std::uint8_t>(key.size());
    std::ranges::copy(key, end + kKeyHead);
    memory.key_bytes = static_cast<std::uint16_t>(memory.key_bytes + kKeyHead + key.size());
    return Status::ok();
}

}  // namespace pccl::transport
