// SPDX-License-Identifier: Apache-2.0

// Offers of links over a net plug-in, and their messages on a socket, from a peer.
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "csrc/base/unique_fd.h"
#include "csrc/transport/netplugin/wire.h"
#include "tests/fuzz/require.h"

namespace {

using pccl::transport::netplugin::LinkOffer;
using pccl::transport::netplugin::LinkOfferReader;

void parse_offer(std::string_view bytes) {
    const auto offer = LinkOffer::parse(bytes);
    if (!offer.is_ok()) return;
    require(offer->serialise() == bytes);
    require(offer->message_bytes >= LinkOffer::kLeastMessage &&
            offer->message_bytes <= LinkOffer::kMostMessage);
}

/// Reads bytes that arrive in parts: the result does not depend on where they are cut.
std::optional<LinkOffer> read_offer_in_parts(std::string_view bytes, std::size_t part) {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const pccl::UniqueFd here(ends[0]);
    const pccl::UniqueFd peer(ends[1]);
    LinkOfferReader reader;
    while (!bytes.empty()) {
        const std::string_view next = bytes.substr(0, part);
        if (::send(peer.get(), next.data(), next.size(), MSG_NOSIGNAL) < 0) return std::nullopt;
        bytes.remove_prefix(next.size());
        const auto offer = reader.advance(here.get());
        if (!offer.is_ok()) return std::nullopt;
        if (*offer) return **offer;
    }
    return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    parse_offer(bytes);
    require(read_offer_in_parts(bytes, 7) == read_offer_in_parts(bytes, 4096));
    return 0;
}
