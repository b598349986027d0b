// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/peer_address.h"

#include <algorithm>

#include "csrc/base/assert.h"
#include "csrc/base/text/text.h"

namespace pccl::transport {
namespace {

void write_list(ByteWriter& out, const std::vector<std::string>& texts) {
    PCCL_ASSERT(texts.size() <= PeerAddress::kMostAddresses);
    out.u8(static_cast<std::uint8_t>(texts.size()));
    for (const std::string& text : texts) {
        PCCL_ASSERT(text.size() <= PeerAddress::kLongestAddress);
        out.text(text);
    }
}

Status read_list(ByteReader& in, std::size_t most, std::vector<std::string>& texts) {
    std::uint8_t count = 0;
    PCCL_TRY(in.u8(count));
    if (count > most)
        return Status::invalid_argument(
            concat(int{count}, " addresses before byte ", in.offset(), "; there may be ", most));
    texts.resize(count);
    for (std::string& text : texts) PCCL_TRY(in.text(text, PeerAddress::kLongestAddress));
    return Status::ok();
}

/// Reads the addresses of one transport; `left` is the number of addresses that may follow.
Status read_links(ByteReader& in, PeerAddress& address, std::size_t& left) {
    std::uint8_t kind = 0;
    PCCL_TRY(in.u8(kind));
    if (kind >= kTransportKinds)
        return Status::invalid_argument(
            concat("unknown transport ", int{kind}, " before byte ", in.offset()));
    std::vector<std::string> addresses;
    PCCL_TRY(read_list(in, left, addresses));
    if (addresses.empty())
        return Status::invalid_argument(
            concat("no address of a transport before byte ", in.offset()));
    left -= addresses.size();
    if (address.links.emplace(static_cast<TransportKind>(kind), std::move(addresses)).second)
        return Status::ok();
    return Status::invalid_argument(concat("a transport is named twice before byte ", in.offset()));
}

}  // namespace

Result<std::string> PeerAddress::first_of(TransportKind kind) const {
    const auto found = links.find(kind);
    if (found != links.end() && !found->second.empty()) return found->second.front();
    return Status::unavailable(concat("the peer has no transport ", to_string(kind)));
}

void PeerAddress::prefer(std::span<const sys::Address> sources) {
    const auto is_preferred = [sources](const std::string& text) {
        const auto address = sys::Address::parse(text);
        return address.is_ok() && std::ranges::any_of(sources, [&address](const auto& source) {
                   return source.same_ip(*address);
               });
    };
    std::ranges::stable_partition(control.doors, [&](const std::string& door) {
        return !door.starts_with("unix:") && is_preferred(door);
    });
    // Addresses within the host stay in front.
    std::ranges::stable_partition(control.doors,
                                  [](const auto& door) { return door.starts_with("unix:"); });
    for (auto& [kind, addresses] : links) std::ranges::stable_partition(addresses, is_preferred);
}

void PeerAddress::write(ByteWriter& out) const {
    PCCL_ASSERT(control.host.size() <= kLongestHost);
    out.text(control.host);
    PCCL_ASSERT(control.kernel.size() <= kLongestHost);
    out.text(control.kernel);
    out.u32(control.user);
    write_list(out, control.doors);
    out.u8(static_cast<std::uint8_t>(links.size()));
    for (const auto& [kind, addresses] : links) {
        out.u8(static_cast<std::uint8_t>(kind));
        write_list(out, addresses);
    }
}

Result<PeerAddress> PeerAddress::read(ByteReader& in) {
    PeerAddress address;
    PCCL_TRY(in.text(address.control.host, kLongestHost));
    PCCL_TRY(in.text(address.control.kernel, kLongestHost));
    PCCL_TRY(in.u32(address.control.user));
    PCCL_TRY(read_list(in, kMostAddresses, address.control.doors));
    std::uint8_t transports = 0;
    PCCL_TRY(in.u8(transports));
    std::size_t left = kMostAddresses;
    for (int i = 0; i < transports; ++i) PCCL_TRY(read_links(in, address, left));
    return address;
}

}  // namespace pccl::transport
