// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/link_exchange.h"

#include <algorithm>
#include <array>
#include <bit>

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

constexpr std::uint32_t kMagic = 0x56434350;  // "PCCV"
constexpr std::uint16_t kVersion = 5;
constexpr std::uint32_t kMost24Bits = (1U << 24) - 1;

void write_pair(const QueuePairAddress& pair, ByteWriter& out) {
    out.u32(pair.number);
    out.u32(pair.sequence);
    out.u16(pair.lid);
    out.raw(std::as_bytes(std::span(pair.gid)));
    out.u8(pair.mtu);
    out.u8(pair.reads);
    out.u8(pair.is_ethernet ? 1 : 0);
}

Status read_pair(ByteReader& in, QueuePairAddress& pair) {
    std::uint8_t is_ethernet = 0;
    PCCL_TRY(in.u32(pair.number));
    PCCL_TRY(in.u32(pair.sequence));
    PCCL_TRY(in.u16(pair.lid));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(pair.gid))));
    PCCL_TRY(in.u8(pair.mtu));
    PCCL_TRY(in.u8(pair.reads));
    PCCL_TRY(in.u8(is_ethernet));
    pair.is_ethernet = is_ethernet == 1;
    if (pair.number > kMost24Bits || pair.sequence > kMost24Bits || is_ethernet > 1)
        return Status::invalid_argument("a queue pair whose numbers cannot be");
    if (pair.mtu < IBV_MTU_256 || pair.mtu > IBV_MTU_4096 || pair.reads < 1 || pair.reads > 16)
        return Status::invalid_argument(concat("a queue pair with MTU code ", int{pair.mtu},
                                               " and ", int{pair.reads},
                                               " reads; expected 1 to 5, and 1 to 16"));
    return Status::ok();
}

void write_lane(const LaneEnd& lane, ByteWriter& out) {
    out.u8(lane.device);
    out.u8(lane.partner);
    write_pair(lane.pair, out);
    out.raw(std::as_bytes(std::span(lane.door.address)));
    out.u16(lane.door.port);
    out.raw(std::as_bytes(std::span(lane.door.token)));
}

Result<std::uint8_t> read_count(ByteReader& in, std::size_t least, std::size_t most,
                                std::string_view what) {
    std::uint8_t count = 0;
    PCCL_TRY(in.u8(count));
    if (count >= least && count <= most) return count;
    return Status::invalid_argument(
        concat(int{count}, " ", what, "; expected ", least, " to ", most));
}

Result<PeerRange> read_range(ByteReader& in, std::size_t devices) {
    PeerRange range{.keys = std::vector<std::uint32_t>(devices)};
    PCCL_TRY(in.u64(range.address));
    PCCL_TRY(in.u64(range.bytes));
    if (range.address == 0 || range.bytes == 0 || range.address + range.bytes < range.address)
        return Status::invalid_argument("a range of memory that cannot be");
    for (std::uint32_t& key : range.keys) PCCL_TRY(in.u32(key));
    return range;
}

Result<LaneEnd> read_lane(ByteReader& in, std::size_t devices) {
    LaneEnd lane;
    PCCL_TRY(in.u8(lane.device));
    if (lane.device >= devices)
        return Status::invalid_argument(
            concat("a queue pair of device ", int{lane.device}, " of ", devices));
    PCCL_TRY(in.u8(lane.partner));
    if (lane.partner >= LinkEnd::kMostLanes)
        return Status::invalid_argument(
            concat("a partner ", int{lane.partner}, "; expected 0 to ", LinkEnd::kMostLanes - 1));
    PCCL_TRY(read_pair(in, lane.pair));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(lane.door.address))));
    PCCL_TRY(in.u16(lane.door.port));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(lane.door.token))));
    return lane;
}

Status read_head(ByteReader& in) {
    std::uint32_t magic = 0;
    std::uint16_t version = 0;
    PCCL_TRY(in.u32(magic));
    PCCL_TRY(in.u16(version));
    if (magic != kMagic) return Status::invalid_argument("no end of an RDMA link");
    if (version == kVersion) return Status::ok();
    return Status::unsupported(concat("an RDMA link of version ", version, "; this one is version ",
                                      kVersion, ": use one version of PCCL on all hosts"));
}

}  // namespace

CmDoor CmDoor::at(const sys::Address& address, const CmToken& token) {
    CmDoor door{.address = {}, .port = address.port(), .token = token};
    const auto bytes = address.ip_bytes();
    std::ranges::copy(bytes, door.address.end() - static_cast<std::ptrdiff_t>(bytes.size()));
    const bool is_ipv4 = bytes.size() < door.address.size();
    if (is_ipv4) door.address[10] = door.address[11] = 0xff;
    return door;
}

Result<sys::Address> CmDoor::to_address() const {
    return sys::Address::from_ip(sys::verbs::GidEntry{.index = 0, .gid = address}.address(), port);
}

std::string LinkEnd::serialise() const {
    ByteWriter out;
    out.u32(kMagic);
    out.u16(kVersion);
    out.u32(ring_bytes);
    out.u32(receives);
    out.u8(static_cast<std::uint8_t>(way));
    const std::size_t devices = memory.empty() ? 0 : memory.front().keys.size();
    out.u8(static_cast<std::uint8_t>(devices));
    out.u8(static_cast<std::uint8_t>(memory.size()));
    for (const PeerRange& range : memory) {
        out.u64(range.address);
        out.u64(range.bytes);
        for (const std::uint32_t key : range.keys) out.u32(key);
    }
    out.u8(static_cast<std::uint8_t>(lanes.size()));
    for (const LaneEnd& lane : lanes) write_lane(lane, out);
    return out.take();
}

Result<LinkEnd> LinkEnd::parse(std::string_view bytes) {
    ByteReader in(bytes);
    LinkEnd end;
    PCCL_TRY(read_head(in));
    PCCL_TRY(in.u32(end.ring_bytes));
    PCCL_TRY(in.u32(end.receives));
    if (!std::has_single_bit(end.ring_bytes) || end.ring_bytes < kLeastRing ||
        end.ring_bytes > kMostRing)
        return Status::invalid_argument(concat("a ring of ", end.ring_bytes,
                                               " bytes; expected a power of two from 64 KiB to "
                                               "64 MiB"));
    if (end.receives < 1 || end.receives > kMostReceives)
        return Status::invalid_argument(
            concat(end.receives, " receive requests; expected 1 to ", kMostReceives));
    std::uint8_t way = 0;
    PCCL_TRY(in.u8(way));
    if (way > static_cast<std::uint8_t>(ConnectWay::kRdmaCm))
        return Status::invalid_argument(concat("a way to connect ", int{way}, "; expected 0 to 2"));
    end.way = static_cast<ConnectWay>(way);
    PCCL_ASSIGN_OR_RETURN(const std::size_t devices, read_count(in, 1, kMostDevices, "devices"));
    PCCL_ASSIGN_OR_RETURN(const std::size_t ranges, read_count(in, 1, kMostRanges, "ranges"));
    for (std::size_t i = 0; i < ranges; ++i) {
        PCCL_ASSIGN_OR_RETURN(PeerRange range, read_range(in, devices));
        end.memory.push_back(std::move(range));
    }
    PCCL_ASSIGN_OR_RETURN(const std::size_t lanes, read_count(in, 1, kMostLanes, "queue pairs"));
    for (std::size_t i = 0; i < lanes; ++i) {
        PCCL_ASSIGN_OR_RETURN(const LaneEnd lane, read_lane(in, devices));
        end.lanes.push_back(lane);
    }
    PCCL_TRY(in.finish());
    return end;
}

std::string serialise_lane(const LaneEnd& lane) {
    ByteWriter out;
    write_lane(lane, out);
    return out.take();
}

Result<LaneEnd> parse_lane(std::string_view bytes) {
    ByteReader in(bytes);
    PCCL_ASSIGN_OR_RETURN(const LaneEnd lane, read_lane(in, LinkEnd::kMostDevices));
    PCCL_TRY(in.finish());
    return lane;
}

std::string message_of(const Result<LinkEnd>& end) {
    return answer_message(end.is_ok() ? Result<std::string>(end->serialise())
                                      : Result<std::string>(end.status()));
}

Result<std::optional<LinkEnd>> LinkEndReader::advance(int socket) {
    PCCL_ASSIGN_OR_RETURN(const auto description, answer_.advance(socket));
    if (!description) return std::optional<LinkEnd>();
    PCCL_ASSIGN_OR_RETURN(LinkEnd parsed, LinkEnd::parse(*description));
    return std::optional(std::move(parsed));
}

}  // namespace pccl::transport::verbs
