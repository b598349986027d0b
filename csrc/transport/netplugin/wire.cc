// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/wire.h"

#include <span>

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::netplugin {
namespace {

constexpr std::uint32_t kOfferMagic = 0x4E434350;  // "PCCN"
constexpr std::uint16_t kOfferVersion = 2;

}  // namespace

std::string LinkOffer::serialise() const {
    ByteWriter out;
    out.u32(kOfferMagic);
    out.u16(kOfferVersion);
    out.u32(message_bytes);
    out.u32(static_cast<std::uint32_t>(lanes.size()));
    for (const LaneOffer& lane : lanes) {
        out.u32(static_cast<std::uint32_t>(lane.rail));
        for (const sys::net_plugin::Handle& handle : lane.handles) out.raw(handle);
    }
    return out.take();
}

Result<LinkOffer> LinkOffer::parse(std::string_view bytes) {
    ByteReader in(bytes);
    LinkOffer offer;
    std::uint32_t magic = 0;
    std::uint16_t version = 0;
    PCCL_TRY(in.u32(magic));
    PCCL_TRY(in.u16(version));
    if (magic != kOfferMagic || version != kOfferVersion)
        return Status::invalid_argument(concat("an offer of a link over a net plug-in of version ",
                                               version, "; expected ", kOfferVersion));
    PCCL_TRY(in.u32(offer.message_bytes));
    if (offer.message_bytes < kLeastMessage || offer.message_bytes > kMostMessage)
        return Status::invalid_argument(concat("messages of ", offer.message_bytes,
                                               " bytes; expected ", kLeastMessage, " to ",
                                               kMostMessage));
    std::uint32_t lanes = 0;
    PCCL_TRY(in.u32(lanes));
    if (lanes < 1 || lanes > kMostLanes)
        return Status::invalid_argument(
            concat(lanes, " devices for a link; expected 1 to ", kMostLanes));
    for (std::uint32_t i = 0; i < lanes; ++i) {
        LaneOffer& lane = offer.lanes.emplace_back();
        std::uint32_t rail = 0;
        PCCL_TRY(in.u32(rail));
        lane.rail = static_cast<std::int32_t>(rail);
        for (sys::net_plugin::Handle& handle : lane.handles) PCCL_TRY(in.raw(handle));
    }
    PCCL_TRY(in.finish());
    return offer;
}

std::string message_of(const Result<LinkOffer>& offer) {
    return answer_message(offer.is_ok() ? Result<std::string>(offer->serialise())
                                        : Result<std::string>(offer.status()));
}

Result<std::optional<LinkOffer>> LinkOfferReader::advance(int socket) {
    PCCL_ASSIGN_OR_RETURN(const auto description, answer_.advance(socket));
    if (!description) return std::optional<LinkOffer>();
    PCCL_ASSIGN_OR_RETURN(const LinkOffer offer, LinkOffer::parse(*description));
    return std::optional(offer);
}

}  // namespace pccl::transport::netplugin
