// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/memory_key.h"

#include <limits>

#include "csrc/base/bytes.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/host.h"
#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/shm/ledger.h"

namespace pccl::transport::shm {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

std::string write(const MemoryKey& key) {
    ByteWriter out;
    out.u64(key.host);
    out.u64(key.address);
    out.i64(key.ledger.pid);
    out.u32(static_cast<std::uint32_t>(key.ledger.file));
    out.u64(key.ledger.device);
    out.u64(key.ledger.inode);
    out.u32(key.line);
    out.u64(key.line_address);
    out.u32(static_cast<std::uint32_t>(key.file));
    out.u64(key.inode);
    out.u64(key.offset);
    if (key.gpu) {
        out.u64(key.gpu->offset);
        out.raw(key.gpu->gpu);
        out.raw(key.gpu->allocation);
    }
    return out.take();
}

Result<GpuKey> read_gpu(ByteReader& in) {
    GpuKey key;
    PCCL_TRY(in.u64(key.offset));
    PCCL_TRY(in.raw(key.gpu));
    PCCL_TRY(in.raw(key.allocation));
    return key;
}

Result<MemoryKey> read(std::string_view bytes) {
    ByteReader in(bytes);
    MemoryKey key;
    std::uint32_t ledger = 0;
    std::uint32_t file = 0;
    PCCL_TRY(in.u64(key.host));
    PCCL_TRY(in.u64(key.address));
    PCCL_TRY(in.i64(key.ledger.pid));
    PCCL_TRY(in.u32(ledger));
    PCCL_TRY(in.u64(key.ledger.device));
    PCCL_TRY(in.u64(key.ledger.inode));
    PCCL_TRY(in.u32(key.line));
    PCCL_TRY(in.u64(key.line_address));
    PCCL_TRY(in.u32(file));
    PCCL_TRY(in.u64(key.inode));
    PCCL_TRY(in.u64(key.offset));
    if (in.remaining() > 0) {
        PCCL_ASSIGN_OR_RETURN(key.gpu, read_gpu(in));
    }
    PCCL_TRY(in.finish());
    key.ledger.file = static_cast<std::int32_t>(ledger);
    key.file = static_cast<std::int32_t>(file);
    return key;
}

bool fits(std::uint64_t begin, std::uint64_t bytes) {
    return bytes <= std::numeric_limits<std::uint64_t>::max() - begin;
}

Status check(const MemoryKey& key, std::uint64_t bytes) {
    if (!fits(key.address, bytes) || !fits(key.offset, bytes))
        return Status::invalid_argument(concat(bytes, " bytes do not fit at address ", key.address,
                                               " and ", key.offset, " of a file"));
    if (key.gpu && !fits(key.gpu->offset, bytes))
        return Status::invalid_argument(
            concat(bytes, " bytes do not fit at ", key.gpu->offset, " of an allocation"));
    if (key.ledger.pid <= 0 || key.ledger.file < 0 || key.file < -1)
        return Status::invalid_argument(concat("no process has files ", key.ledger.file, " and ",
                                               key.file, " of pid ", key.ledger.pid));
    if (key.line >= Ledger::kLines)
        return Status::invalid_argument(
            concat("line ", key.line, " of a ledger of ", Ledger::kLines));
    return Status::ok();
}

}  // namespace

Result<std::uint64_t> host_hash() {
    PCCL_ASSIGN_OR_RETURN(const std::string identity, sys::kernel_identity());
    Digest digest;
    digest.add(identity);
    return digest.value();
}

Status add_key(abi::MemoryDescriptor& memory, const MemoryKey& key) {
    return transport::add_key(memory, TransportKind::kShm, write(key));
}

Result<MemoryKey> key_on_its_host(const abi::MemoryDescriptor& memory) {
    const auto bytes = key_of(memory, TransportKind::kShm);
    if (!bytes) return Status::unsupported("the memory is not reached through shared memory");
    auto key = read(*bytes);
    if (key.is_ok() && !check(*key, memory.bytes).is_ok()) key = check(*key, memory.bytes);
    if (!key.is_ok()) return key.status().with_context("a key of shared memory is not readable");
    return key;
}

Result<MemoryKey> key_on_this_host(const abi::MemoryDescriptor& memory) {
    PCCL_ASSIGN_OR_RETURN(MemoryKey key, key_on_its_host(memory));
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t here, host_hash());
    if (key.host != here) return Status::unsupported("the memory is on another host");
    return key;
}

Result<MemoryView> map_memory(const abi::MemoryDescriptor& memory) {
    PCCL_ASSIGN_OR_RETURN(const MemoryKey key, key_on_this_host(memory));
    return map_memory(key, memory.bytes);
}

Result<MemoryView> map_memory(const MemoryKey& key, std::uint64_t bytes) {
    if (key.file < 0)
        return Status::unsupported("the memory cannot be mapped: it is in no file of its own");
    ProcessFile file = key.ledger;
    file.file = key.file;
    file.inode = key.inode;
    const std::uint64_t skipped = key.offset % kPageBytes;
    PCCL_ASSIGN_OR_RETURN(
        Mapping mapping,
        Mapping::of_process(file, {.offset = key.offset - skipped, .bytes = skipped + bytes}));
    const auto memory = mapping.memory().subspan(skipped);
    return MemoryView{std::move(mapping), memory};
}

}  // namespace pccl::transport::shm
