// SPDX-License-Identifier: Apache-2.0

// What a peer's link of one-sided access sends, requests and answers to those that this end has
// made: whatever it is, nothing beside the registration and the blocks that were asked for changes,
// and each post ends once.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/over_links.h"
#include "tests/fakes/memory_links.h"
#include "tests/fuzz/require.h"

namespace {

using namespace pccl::transport;

constexpr std::size_t kGuard = 64;
constexpr std::size_t kRegistered = 256;
constexpr MemoryIdentity kIdentity{.id = 1, .nonce = 2};
constexpr std::size_t kPosts = 4;

bool is_untouched(std::span<const std::byte> guard) {
    return std::ranges::all_of(guard, [](std::byte each) { return each == std::byte{0}; });
}

/// Registered, with bytes before and behind that are to stay zeroes.
struct Guarded {
    explicit Guarded(RmaOverLinks& rma)
        : bytes(kGuard + kRegistered + kGuard),
          registration(
              rma.add({.data = bytes.data() + kGuard, .bytes = kRegistered}, kIdentity).value()) {}
    void check_guards() const {
        require(is_untouched(std::span(bytes).first(kGuard)));
        require(is_untouched(std::span(bytes).last(kGuard)));
    }

    std::vector<std::byte> bytes;
    std::unique_ptr<Registration> registration;
};

/// Requests 0 to 3: a read, one of three blocks, a write, and a read of a run. Between the blocks
/// of the reads nothing may change.
void request(RmaLink& link, const Registration& local, const pccl::abi::MemoryDescriptor& remote) {
    const auto piece = [&](std::size_t at, std::size_t bytes) {
        return RmaPiece{.local = &local, .at = at, .remote = &remote, .there = at, .bytes = bytes};
    };
    const std::array one{piece(0, 40)};
    const std::array list{piece(50, 3), piece(60, 1), piece(70, 8)};
    require(link.post(RmaOp::kRead, one, 0).is_ok());
    require(link.post(RmaOp::kRead, list, 1).is_ok());
    require(link.post(RmaOp::kWrite, one, 2).is_ok());
    const RmaRun run{.first = piece(100, 8), .stride_here = 16, .stride_there = 8, .count = 4};
    require(link.post_run(RmaOp::kRead, run, 3).is_ok());
}

bool is_requested(std::size_t at) {
    const bool of_list = (at >= 50 && at < 53) || at == 60 || (at >= 70 && at < 78);
    const bool of_run = at >= 100 && at < 100 + 4 * 16 && (at - 100) % 16 < 8;
    return at < 40 || of_list || of_run;
}

void check_requested(const Guarded& local) {
    local.check_guards();
    for (std::size_t at = 0; at < kRegistered; ++at)
        require(is_requested(at) || local.bytes[kGuard + at] == std::byte{0});
}

void receive_ends(RmaLink& link) {
    std::array<RmaCompletion, 2 * kPosts> received;
    std::set<std::uint64_t> ended;
    for (;;) {
        const auto count = link.poll(received);
        if (!count.is_ok() || *count == 0) return;
        for (const RmaCompletion& each : std::span(received).first(*count))
            require(each.ticket < kPosts && ended.insert(each.ticket).second);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    RmaOverLinks rma;
    RmaOverLinks unreached;  // by the peer's requests
    const Guarded reached(rma);
    const Guarded requesting(unreached);
    const auto notified = std::make_shared<pccl::fakes::MemoryStream>();
    const auto bytes = std::as_bytes(std::span(data, size));
    notified->bytes.assign(bytes.begin(), bytes.end());
    const auto reported = std::make_shared<pccl::fakes::MemoryStream>();
    const auto link = rma.connect({.out = std::make_unique<pccl::fakes::MemorySendLink>(reported),
                                   .in = std::make_unique<pccl::fakes::MemoryRecvLink>(notified)})
                          .value();
    pccl::abi::MemoryDescriptor remote{};
    remote.id = 7;
    remote.nonce = 8;
    remote.bytes = kRegistered;
    request(*link, *requesting.registration, remote);
    for (int i = 0; i < 3; ++i) static_cast<void>(link->next_notification());
    receive_ends(*link);
    reached.check_guards();
    check_requested(requesting);
    return 0;
}
