#include "csrc/transport/registered_memory.h"

#include <limits>

#include "csrc/base/bytes.h"
#include "csrc/base/text.h"

namespace pccl::transport {
namespace {

constexpr std::uint16_t kMagic = 0x3E40;
constexpr Rank kMostRanks = 1 << 24;

Status check(const abi::MemoryDescriptor& memory) {
    if (memory.owner < 0 || memory.owner >= kMostRanks)
        return Status::invalid_argument(concat("its owner is rank ", memory.owner));
    if (memory.bytes > std::numeric_limits<std::uint64_t>::max() - memory.address)
        return Status::invalid_argument(
            concat(memory.bytes, " bytes at address ", memory.address, " do not fit"));
    if (transport::TransportFlags::from_bits(memory.transports).bits() != memory.transports)
        return Status::invalid_argument(concat("unknown transports in bits ", memory.transports));
    if (memory.file < -1 || (memory.file >= 0 && memory.pid <= 0))
        return Status::invalid_argument(
            concat("no process has a file ", memory.file, " of pid ", memory.pid));
    return Status::ok();
}

Status read(ByteReader& in, abi::MemoryDescriptor& memory) {
    std::uint16_t magic = 0;
    std::uint32_t file = 0;
    std::uint32_t owner = 0;
    PCCL_TRY(in.u16(magic));
    if (magic != kMagic) return Status::invalid_argument("it does not start like one");
    PCCL_TRY(in.u64(memory.address));
    PCCL_TRY(in.u64(memory.bytes));
    PCCL_TRY(in.u64(memory.host));
    PCCL_TRY(in.u64(memory.device));
    PCCL_TRY(in.u64(memory.inode));
    PCCL_TRY(in.i64(memory.pid));
    PCCL_TRY(in.u32(file));
    PCCL_TRY(in.u32(owner));
    PCCL_TRY(in.u32(memory.transports));
    PCCL_TRY(in.finish());
    memory.file = static_cast<std::int32_t>(file);
    memory.owner = static_cast<std::int32_t>(owner);
    return check(memory);
}

}  // namespace

std::string RegisteredMemory::serialise() const {
    ByteWriter out;
    out.u16(kMagic);
    out.u64(descriptor_.address);
    out.u64(descriptor_.bytes);
    out.u64(descriptor_.host);
    out.u64(descriptor_.device);
    out.u64(descriptor_.inode);
    out.i64(descriptor_.pid);
    out.u32(static_cast<std::uint32_t>(descriptor_.file));
    out.u32(static_cast<std::uint32_t>(descriptor_.owner));
    out.u32(descriptor_.transports);
    return out.take();
}

Result<RegisteredMemory> RegisteredMemory::deserialise(std::string_view bytes) {
    ByteReader in(bytes);
    abi::MemoryDescriptor memory{};
    if (const Status status = read(in, memory); !status.is_ok())
        return status.with_context("a memory descriptor is not readable");
    return RegisteredMemory(memory);
}

bool operator==(const RegisteredMemory& a, const RegisteredMemory& b) {
    const abi::MemoryDescriptor& x = a.descriptor_;
    const abi::MemoryDescriptor& y = b.descriptor_;
    return x.address == y.address && x.bytes == y.bytes && x.host == y.host &&
           x.device == y.device && x.inode == y.inode && x.pid == y.pid && x.file == y.file &&
           x.owner == y.owner && x.transports == y.transports;
}

}  // namespace pccl::transport
