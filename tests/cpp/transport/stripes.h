// SPDX-License-Identifier: Apache-2.0

// A TCP link whose stream goes over several sockets, and its two ends.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/tcp/recv_link.h"
#include "csrc/transport/tcp/send_link.h"
#include "csrc/transport/transport.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::tcp {

using fakes::test_deadline;

inline constexpr std::size_t kBlock = 1024;

/// Byte i of a stream tells where it belongs.
inline std::vector<std::byte> stamped(std::size_t count, unsigned stream) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i)
        bytes[i] = static_cast<std::byte>((i * 2654435761U + stream * 97) >> 11);
    return bytes;
}

struct Pair {
    UniqueFd near;
    UniqueFd far;
};

inline Pair tcp_pair() {
    const sys::StreamOptions stream{.buffer_bytes = 1 * kMiB, .give_up = {}};
    auto listener = sys::listen_on(sys::Address::parse("127.0.0.1:0").value(), stream);
    const auto address = sys::local_address(listener->get());
    Pair pair;
    pair.near = std::move(sys::connect_to(*address, test_deadline(), stream).value());
    while (!pair.far.is_open()) {
        auto accepted = sys::accept_next(listener->get(), stream);
        if (accepted.is_ok() && accepted->has_value()) pair.far = std::move(**accepted);
    }
    return pair;
}

/// One end of a link as a transport makes it, of the near ends of sockets: the test has the far
/// ones, and so sees, and does, what a path or a peer may.
class StripesTest : public testing::Test {
   protected:
    void connect(std::size_t count) {
        far_.clear();
        near_.clear();
        for (std::size_t i = 0; i < count; ++i) {
            Pair pair = tcp_pair();
            near_.push_back(std::move(pair.near));
            far_.push_back(std::move(pair.far));
        }
    }
    /// Before it is part of a link.
    [[nodiscard]] int near(std::size_t socket) const { return near_[socket].get(); }
    LinkParts parts(std::size_t block) {
        std::vector<Stripes> channels;
        channels.emplace_back(watched(std::move(near_)), block, std::chrono::seconds(10));
        channels.emplace_back(watched(one()), block, std::chrono::seconds(10));
        const CloseContext close_context{.self = 0, .leaver = 3, .ranks = 8};
        return {.peer = 3,
                .peer_name = "rank 3 at its address",
                .channels = std::move(channels),
                .watch = PeerWatch(close_context, std::move(watched(one()).front()))};
    }
    std::unique_ptr<TcpSendLink> sender(std::size_t sockets, std::size_t block = kBlock) {
        connect(sockets);
        return std::make_unique<TcpSendLink>(parts(block));
    }
    std::unique_ptr<TcpRecvLink> receiver(std::size_t sockets, std::size_t block = kBlock) {
        connect(sockets);
        return std::make_unique<TcpRecvLink>(parts(block));
    }
    /// As the other end would: the number of a block, and some of its bytes.
    void put(std::size_t socket, BlockNumber number, Bytes bytes) {
        put(socket, std::as_bytes(std::span(&number, 1)));
        put(socket, bytes);
    }
    void put(std::size_t socket, Bytes bytes) {
        ASSERT_TRUE(sys::send_all(far_[socket].get(), bytes, test_deadline()).is_ok());
    }
    /// What is here of the stream within a moment, at most `count` bytes.
    static std::vector<std::byte> take(TcpRecvLink& link, std::size_t count,
                                       Duration moment = std::chrono::seconds(30)) {
        std::vector<std::byte> taken(count);
        std::size_t at = 0;
        for (const Deadline end = Deadline::after(moment); at < count && !end.passed();) {
            const auto got = link.receive(kCollectiveChannel, MutableBytes(taken).subspan(at));
            EXPECT_TRUE(got.is_ok()) << got.status().to_string();
            if (!got.is_ok()) break;
            at += *got;
        }
        taken.resize(at);
        return taken;
    }
    static Status fault_of(const std::function<Status()>& look) {
        Status found;
        for (const Deadline end = test_deadline(); found.is_ok() && !end.passed();) {
            found = look();
            system_clock().sleep_for(std::chrono::milliseconds(1));
        }
        return found;
    }
    static Status fault_of(TcpRecvLink& link) {
        std::array<std::byte, 8> into{};
        return fault_of([&] { return link.receive(kCollectiveChannel, into).status(); });
    }

    std::vector<UniqueFd> far_;

   private:
    std::vector<UniqueFd> one() {
        Pair pair = tcp_pair();
        std::vector<UniqueFd> sockets;
        sockets.push_back(std::move(pair.near));
        kept_.push_back(std::move(pair.far));
        return sockets;
    }
    std::vector<WatchedSocket> watched(std::vector<UniqueFd> sockets) {
        std::vector<WatchedSocket> watched;
        for (UniqueFd& socket : sockets) {
            watched.emplace_back(std::move(socket), *waiter_);
            EXPECT_TRUE(watched.back().watch().is_ok());
        }
        return watched;
    }

    std::unique_ptr<Waiter> waiter_ = std::move(Waiter::create().value());
    std::vector<UniqueFd> near_;
    std::vector<UniqueFd> kept_;
};

}  // namespace pccl::transport::tcp
