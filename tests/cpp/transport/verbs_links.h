// SPDX-License-Identifier: Apache-2.0

// Processes with RDMA ports on the fake libibverbs, and links between them, all of which one thread
// serves: what they do is the same each time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/transport/rma.h"
#include "csrc/transport/verbs/verbs_transport.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/host.h"
#include "tests/fakes/verbs_control.h"
#include "tests/fakes/verbs_member.h"

namespace pccl::transport::verbs {

/// Devices of all tests of this program: the fake reads the variable at its first use.
inline const bool kUsesFakeVerbs = [] {
    ::setenv("FAKE_VERBS_DEVICES", "mlx5_0,mlx5_1:2,mlx5_2:down,mlx5_3:ib,rxe0,siw0", 1);
    return fakes::use_fake_verbs();
}();

inline VerbsOptions one_port() { return {.hca = "=mlx5_0"}; }

/// Group of the links: one of 513 ranks has the shortest rings.
inline constexpr GroupId kVerbsGroup{5, 5};
inline constexpr Secret kVerbsSecret{6, 6};
inline constexpr int kManyRanks = 513;

inline fakes::MemberMaker verbs_maker(const VerbsOptions& options) {
    return [options](Waiter& waiter) { return fakes::verbs_member(waiter, options); };
}

/// Process with a rank.
class VerbsHost final : public fakes::Host {
   public:
    explicit VerbsHost(Rank rank, const VerbsOptions& options = one_port())
        : VerbsHost(rank, verbs_maker(options)) {}
    /// With any transport.
    VerbsHost(Rank rank, const fakes::MemberMaker& make) : Host(make), rank_(rank) {}

    [[nodiscard]] Rank rank() const { return rank_; }
    std::optional<Secret> secret_of(const GroupId&) override { return kVerbsSecret; }
    void accepted(const LinkRequest&, std::unique_ptr<RecvLink> link) override {
        accepted_ = std::move(link);
    }
    void refused(std::string_view, const Status& why) override { refusal_ = why; }
    void fell_short(const LinkRequest&, TransportKind, const Status& why) override {
        refusal_ = why;
    }
    [[nodiscard]] bool has_accepted() const { return accepted_ != nullptr; }
    [[nodiscard]] std::unique_ptr<RecvLink> take_accepted() { return std::move(accepted_); }
    /// Returns why it refused a link; ok: it did not.
    [[nodiscard]] const Status& refusal() const { return refusal_; }

   private:
    const Rank rank_;
    std::unique_ptr<RecvLink> accepted_;
    Status refusal_;
};

struct VerbsStream {
    std::unique_ptr<SendLink> out;
    std::unique_ptr<RecvLink> in;
};

/// Opens a stream of a group of so many ranks.
inline Result<VerbsStream> try_stream(VerbsHost& from, VerbsHost& to, int group_size = 2) {
    const LinkRequest request{.group = kVerbsGroup,
                              .source = from.rank(),
                              .destination = to.rank(),
                              .channel = 0,
                              .group_size = group_size};
    PCCL_ASSIGN_OR_RETURN(const auto pending,
                          from.transport().connect(to.address(), request, kVerbsSecret));
    const Deadline deadline = fakes::test_deadline();
    VerbsStream stream;
    while (stream.out == nullptr || !to.has_accepted()) {
        to.serve(Duration::zero());
        if (stream.out == nullptr) {
            PCCL_ASSIGN_OR_RETURN(stream.out, pending->advance());
        }
        if (deadline.passed()) return pending->timeout_error();
    }
    stream.in = to.take_accepted();
    return stream;
}

inline VerbsStream make_stream(VerbsHost& from, VerbsHost& to, int group_size = 2) {
    auto stream = try_stream(from, to, group_size);
    EXPECT_TRUE(stream.is_ok()) << stream.status().to_string();
    if (!stream.is_ok()) std::abort();
    return std::move(stream).value();
}

/// Calls `look` until it is true; fails the test when that takes too long.
inline void until(const std::function<bool()>& look) {
    const Deadline deadline = fakes::test_deadline();
    while (!look()) {
        if (!deadline.passed()) continue;
        ADD_FAILURE() << "nothing moves any more";
        return;
    }
}

inline std::vector<std::byte> numbered(std::size_t bytes, std::size_t from = 0) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        made[i] = static_cast<std::byte>((from + i) * 31 + ((from + i) >> 8) * 7);
    return made;
}

/// Two processes and a stream from rank 0 to rank 1.
struct VerbsStreamPair {
    explicit VerbsStreamPair(const VerbsOptions& options = one_port(), int group_size = 2)
        : sender(0, options),
          receiver(1, options),
          stream(make_stream(sender, receiver, group_size)) {}

    /// Sends bytes of one channel, and receives them at the same time; returns them.
    std::vector<std::byte> exchange(Bytes bytes, ChannelId channel = kCollectiveChannel) {
        std::vector<std::byte> received(bytes.size());
        MutableBytes into(received);
        until([&] {
            if (!bytes.empty()) {
                const auto sent = out().send(channel, bytes, Flush::kNow);
                EXPECT_TRUE(sent.is_ok()) << sent.status().to_string();
                if (!sent.is_ok()) return true;
                bytes = bytes.subspan(*sent);
            } else if (!out().flush(channel).is_ok()) {
                return true;
            }
            const auto came = in().receive(channel, into);
            EXPECT_TRUE(came.is_ok()) << came.status().to_string();
            if (!came.is_ok()) return true;
            into = into.subspan(*came);
            return into.empty();
        });
        return received;
    }
    /// Returns the error of the sender, which goes on sending.
    Status sender_error() {
        const std::array<std::byte, 16> some{};
        Status error;
        until([&] {
            error = out().send(kCollectiveChannel, some, Flush::kNow).status();
            return !error.is_ok();
        });
        return error;
    }
    /// Returns the error of the receiver, which discards what arrives.
    Status receiver_error() {
        std::vector<std::byte> discarded(64 * kKiB);
        Status error;
        until([&] {
            error = in().receive(kCollectiveChannel, discarded).status();
            return !error.is_ok();
        });
        return error;
    }
    [[nodiscard]] SendLink& out() const { return *stream.out; }
    [[nodiscard]] RecvLink& in() const { return *stream.in; }

    VerbsHost sender;
    VerbsHost receiver;
    VerbsStream stream;
};

/// Registered memory.
struct VerbsMemoryOf {
    VerbsMemoryOf(RmaTransport& transport, std::size_t size)
        : bytes(size), registration(transport.add({.data = bytes.data(), .bytes = size}).value()) {}

    std::vector<std::byte> bytes;
    std::unique_ptr<Registration> registration;
};

/// Two processes with one-sided access to each other; rank 0 initiates.
struct VerbsRmaPair {
    explicit VerbsRmaPair(const VerbsOptions& options = one_port())
        : VerbsRmaPair(options, options) {}
    VerbsRmaPair(const VerbsOptions& of_initiator, const VerbsOptions& of_target)
        : initiator(0, of_initiator),
          target(1, of_target),
          here(initiator.transport().one_sided().value()),
          there(target.transport().one_sided().value()) {
        VerbsStream forth = make_stream(initiator, target);
        VerbsStream back = make_stream(target, initiator);
        link = here->connect({.out = std::move(forth.out), .in = std::move(back.in)}).value();
        peer = there->connect({.out = std::move(back.out), .in = std::move(forth.in)}).value();
    }
    /// Posts all pieces with ticket 1.
    void post(RmaOp op, std::span<const RmaPiece> pieces) {
        until([&] {
            const auto taken = link->post(op, pieces, 1);
            EXPECT_TRUE(taken.is_ok()) << taken.status().to_string();
            if (!taken.is_ok()) return true;
            posts += *taken > 0 ? 1 : 0;
            pieces = pieces.subspan(*taken);
            if (!pieces.empty()) poll();
            return pieces.empty() || !failure.is_ok();
        });
    }
    /// Makes progress at both ends.
    void poll() {
        static_cast<void>(peer->advance());
        std::array<RmaCompletion, 16> completed;
        const auto count = link->poll(completed);
        if (!count.is_ok()) {
            failure = count.status();
            return;
        }
        posts -= *count;
        for (const RmaCompletion& each : std::span(completed).first(*count))
            if (failure.is_ok()) failure = each.status;
    }
    /// Waits until all posts are complete, and returns the first error.
    Status wait() {
        until([&] {
            poll();
            return posts == 0 || !failure.is_ok();
        });
        return std::exchange(failure, Status::ok());
    }
    Status complete(RmaOp op, const RmaPiece& piece) {
        post(op, {&piece, 1});
        return wait();
    }

    VerbsHost initiator;
    VerbsHost target;
    std::shared_ptr<RmaTransport> here;
    std::shared_ptr<RmaTransport> there;
    std::unique_ptr<RmaLink> link;
    std::unique_ptr<RmaLink> peer;
    std::size_t posts = 0;  // that are not complete
    Status failure;
};

}  // namespace pccl::transport::verbs
