// SPDX-License-Identifier: Apache-2.0

// Descriptions of the ends of RDMA links, their messages on a socket, messages about queue pairs of
// one-sided access, its notifications, messages of a failover, and keys of memory, all from a peer.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/notifications.h"
#include "csrc/transport/verbs/failover.h"
#include "csrc/transport/verbs/link_exchange.h"
#include "csrc/transport/verbs/memory_key.h"
#include "csrc/transport/verbs/rma_messages.h"
#include "tests/fakes/memory_links.h"
#include "tests/fuzz/require.h"

namespace {

using namespace pccl::transport::verbs;

void parse_end(std::string_view bytes) {
    const auto end = LinkEnd::parse(bytes);
    if (!end.is_ok()) return;
    require(end->serialise() == bytes && end->lanes.size() <= LinkEnd::kMostLanes);
    for (const LaneEnd& lane : end->lanes)
        require(lane.device < end->memory.front().keys.size() &&
                lane.partner < LinkEnd::kMostLanes);
    for (const PeerRange& range : end->memory)
        require(range.keys.size() == end->memory.front().keys.size());
}

void parse_message(std::string_view bytes) {
    const auto message = RmaMessage::parse(bytes);
    if (!message.is_ok()) return;
    require(message->lane < LinkEnd::kMostLanes && message->end.device < LinkEnd::kMostDevices);
    require(RmaMessage::parse(message->serialise()).is_ok());
}

/// Some of the immediates that notifications name have arrived.
class SomeImmediates final : public pccl::transport::RmaImmediates {
   public:
    bool has_arrived(const pccl::transport::RmaImmediate& immediate) override {
        return immediate.number % 2 == 0;
    }
};

/// Returns the bytes of all notifications until the first error.
std::vector<std::vector<std::byte>> notifications_in(std::string_view bytes, std::size_t part) {
    const auto stream = std::make_shared<pccl::fakes::MemoryStream>();
    pccl::fakes::MemoryRecvLink in(stream);
    SomeImmediates immediates;
    pccl::transport::RmaNotificationReceiver receiver;
    std::vector<std::vector<std::byte>> all;
    while (!bytes.empty()) {
        const auto next = std::as_bytes(std::span(bytes.substr(0, part)));
        stream->bytes.insert(stream->bytes.end(), next.begin(), next.end());
        bytes.remove_prefix(next.size());
        while (true) {
            auto notification = receiver.next(in, immediates);
            if (!notification.is_ok()) return all;
            if (!*notification) break;
            require(!(*notification)->empty() &&
                    (*notification)->size() <= pccl::transport::RmaLink::kMostNotification);
            all.push_back(**std::move(notification));
        }
    }
    return all;
}

void parse_failover(std::string_view bytes) {
    const auto request = FailoverRequest::parse(bytes);
    if (request.is_ok()) {
        require(request->pieces.size() <= FailoverRequest::kMostPieces);
        require(bytes.starts_with(request->serialise()));
    }
    const auto answer = FailoverAnswer::parse(bytes);
    if (answer.is_ok()) require(answer->has_arrived.size() <= FailoverRequest::kMostPieces);
}

/// Reads bytes that arrive in parts: the result does not depend on where they are cut.
std::optional<LinkEnd> read_in_parts(std::string_view bytes, std::size_t part) {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const pccl::UniqueFd here(ends[0]);
    const pccl::UniqueFd peer(ends[1]);
    LinkEndReader reader;
    while (!bytes.empty()) {
        const std::string_view next = bytes.substr(0, part);
        if (::send(peer.get(), next.data(), next.size(), MSG_NOSIGNAL) < 0) return std::nullopt;
        bytes.remove_prefix(next.size());
        const auto end = reader.advance(here.get());
        if (!end.is_ok()) return std::nullopt;
        if (*end) return **end;
    }
    return std::nullopt;
}

void read_rdma_key(std::string_view bytes) {
    pccl::abi::MemoryDescriptor memory{};
    memory.nonce = 1;
    const std::size_t count = std::min(bytes.size(), memory.keys.size());
    std::copy_n(bytes.begin(), count, memory.keys.begin());
    memory.key_bytes = static_cast<std::uint16_t>(count);
    const auto key = remote_key_of(memory);
    if (key.is_ok())
        require(!key->devices.empty() && key->devices.size() <= RemoteKey::kMostDevices);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    parse_end(bytes);
    parse_message(bytes);
    parse_failover(bytes);
    read_rdma_key(bytes);
    require(notifications_in(bytes, 5) == notifications_in(bytes, 4096));
    require(read_in_parts(bytes, 7) == read_in_parts(bytes, 4096));
    return 0;
}
