// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/endpoint.h"

#include "csrc/base/assert.h"
#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::bootstrap {
namespace {

using transport::TransportFlags;

constexpr std::uint16_t kMagic = 0xE9D7;
constexpr std::size_t kLongestHost = 256;
constexpr std::uint32_t kMostRanks = 1U << 24;
constexpr std::size_t kLongestBusId = 32;
constexpr std::int64_t kMostNuma = 4096;
constexpr std::uint32_t kMostCores = 1U << 16;
constexpr std::uint32_t kMostThreads = 1U << 8;

Status bounded(ByteReader& in, std::string_view field, std::uint32_t limit, int& value) {
    std::uint32_t raw = 0;
    PCCL_TRY(in.u32(raw));
    if (raw >= limit)
        return Status::invalid_argument(
            concat(field, " is ", raw, " before byte ", in.offset(), "; it must be below ", limit));
    value = static_cast<int>(raw);
    return Status::ok();
}

Status read_transports(ByteReader& in, TransportFlags& flags) {
    std::uint32_t bits = 0;
    PCCL_TRY(in.u32(bits));
    flags = TransportFlags::from_bits(bits);
    if (flags.bits() == bits) return Status::ok();
    return Status::invalid_argument(
        concat("unknown transports in bits ", bits, " before byte ", in.offset()));
}

Status read_numa(ByteReader& in, int& numa) {
    std::int64_t node = 0;
    PCCL_TRY(in.i64(node));
    if (node < -1 || node >= kMostNuma)
        return Status::invalid_argument(concat(node, " is no NUMA node before byte ", in.offset()));
    numa = static_cast<int>(node);
    return Status::ok();
}

Status read_endpoint(ByteReader& in, Endpoint& endpoint) {
    std::uint16_t magic = 0;
    PCCL_TRY(in.u16(magic));
    if (magic != kMagic) return Status::invalid_argument("it does not start like one");
    PCCL_TRY(bounded(in, "rank", kMostRanks, endpoint.rank));
    PCCL_TRY(in.text(endpoint.host, kLongestHost));
    PCCL_TRY(in.i64(endpoint.pid));
    PCCL_TRY(read_transports(in, endpoint.transports));
    PCCL_ASSIGN_OR_RETURN(endpoint.address, transport::PeerAddress::read(in));
    PCCL_TRY(in.text(endpoint.machine, kLongestHost));
    PCCL_TRY(read_numa(in, endpoint.numa));
    PCCL_TRY(in.text(endpoint.gpu, kLongestBusId));
    PCCL_TRY(bounded(in, "the number of cores", kMostCores, endpoint.cores));
    PCCL_TRY(in.u64(endpoint.core_set));
    PCCL_TRY(bounded(in, "the number of threads", kMostThreads, endpoint.tcp_threads));
    --endpoint.tcp_threads;
    PCCL_TRY(in.u64(endpoint.capsules));
    PCCL_TRY(in.u64(endpoint.nonce));
    return in.finish();
}

}  // namespace

void Endpoint::drop(TransportFlags kinds) {
    transports = transports.without(kinds);
    std::erase_if(address.links, [kinds](const auto& link) { return kinds.has(link.first); });
}

std::string Endpoint::serialise() const {
    PCCL_ASSERT(host.size() <= kLongestHost && rank >= 0);
    ByteWriter out;
    out.u16(kMagic);
    out.u32(static_cast<std::uint32_t>(rank));
    out.text(host);
    out.i64(pid);
    out.u32(transports.bits());
    address.write(out);
    out.text(machine);
    out.i64(numa);
    out.text(gpu);
    out.u32(static_cast<std::uint32_t>(cores));
    out.u64(core_set);
    out.u32(static_cast<std::uint32_t>(tcp_threads + 1));
    out.u64(capsules);
    out.u64(nonce);
    return out.take();
}

Result<Endpoint> Endpoint::deserialise(std::string_view bytes) {
    ByteReader in(bytes);
    Endpoint endpoint;
    if (const Status status = read_endpoint(in, endpoint); !status.is_ok())
        return status.with_context("an endpoint is not readable");
    return endpoint;
}

std::string Endpoint::to_string() const {
    return concat("rank ", rank, " on ", host, " (pid ", pid, ", ", transports.to_string(), ")");
}

}  // namespace pccl::bootstrap
