// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/connection_info.h"

#include "csrc/base/bytes.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/memory_descriptor.h"

namespace pccl::p2p {
namespace {

constexpr std::uint16_t kInfoMagic = 0x5032;
constexpr std::uint16_t kVersion = 6;
constexpr std::size_t kLongestHost = 256;
constexpr std::size_t kLongestProbe = 256;
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);

std::uint32_t checksum(std::string_view bytes) {
    Digest digest;
    digest.add(bytes);
    return digest.checksum();
}

Status read_fields(ByteReader& in, ConnectionInfo& info) {
    std::string probe;
    PCCL_TRY(in.text(info.id.name, SessionId::kLongestName));
    PCCL_TRY(check_name(info.id.name));
    PCCL_TRY(in.u64(info.id.incarnation));
    PCCL_TRY(in.text(info.process.host, kLongestHost));
    PCCL_TRY(in.i64(info.process.pid));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(info.group))));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(info.secret))));
    PCCL_ASSIGN_OR_RETURN(info.address, transport::PeerAddress::read(in));
    PCCL_TRY(in.text(probe, kLongestProbe));
    PCCL_ASSIGN_OR_RETURN(info.probe, transport::parse_memory_descriptor(probe));
    return in.finish();
}

Status read_info(std::string_view bytes, ConnectionInfo& info) {
    if (bytes.size() > ConnectionInfo::kLongest)
        return Status::invalid_argument(
            concat("it has ", bytes.size(), " bytes, of at most ", ConnectionInfo::kLongest));
    ByteReader head(bytes);
    std::uint16_t magic = 0;
    std::uint16_t version = 0;
    PCCL_TRY(head.u16(magic));
    if (magic != kInfoMagic) return Status::invalid_argument("it does not start like one");
    PCCL_TRY(head.u16(version));
    if (version != kVersion)
        return Status::unsupported(concat("it is of version ", version, "; this library reads ",
                                          kVersion, ": run one version everywhere"));
    if (head.remaining() < kChecksumBytes)
        return Status::invalid_argument(concat("it is cut at byte ", bytes.size()));
    const std::string_view summed = bytes.substr(0, bytes.size() - kChecksumBytes);
    ByteReader tail(bytes.substr(summed.size()));
    std::uint32_t sum = 0;
    PCCL_TRY(tail.u32(sum));
    if (sum != checksum(summed))
        return Status::invalid_argument("its checksum is wrong: it was damaged on its way");
    ByteReader in(summed.substr(head.offset()));
    PCCL_TRY(read_fields(in, info));
    if (info.serialise() == bytes) return Status::ok();
    return Status::invalid_argument("its fields are not in their order");
}

}  // namespace

Status check_name(std::string_view name) {
    const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
    if (!name.empty() && name.size() <= SessionId::kLongestName &&
        std::ranges::all_of(name, is_plain))
        return Status::ok();
    return Status::invalid_argument(concat("a session's name has 1 to ", SessionId::kLongestName,
                                           " printable characters without blanks, not ",
                                           name.size(), " of any kind"));
}

std::string ConnectionInfo::serialise() const {
    ByteWriter out;
    out.u16(kInfoMagic);
    out.u16(kVersion);
    out.text(id.name);
    out.u64(id.incarnation);
    out.text(process.host);
    out.i64(process.pid);
    out.raw(std::as_bytes(std::span(group)));
    out.raw(std::as_bytes(std::span(secret)));
    address.write(out);
    out.text(transport::serialise(probe));
    std::string bytes = out.take();
    out.u32(checksum(bytes));
    return bytes + out.take();
}

Result<ConnectionInfo> ConnectionInfo::deserialise(std::string_view bytes) {
    ConnectionInfo info;
    if (const Status status = read_info(bytes, info); !status.is_ok())
        return status.with_context("connection info is not readable");
    return info;
}

std::string ConnectionInfo::to_string() const {
    return concat("session \"", id.name, "\" (process ", process.pid, " on ", process.host, ")");
}

}  // namespace pccl::p2p
