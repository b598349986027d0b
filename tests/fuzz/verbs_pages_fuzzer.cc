// SPDX-License-Identifier: Apache-2.0

// A peer of an RDMA link that writes any counters into the pages of the link, and any immediates:
// the link moves no byte beyond its rings, and ends with an error or goes on. Both ends are in this
// process, on the fake libibverbs, which is in fakes/verbs beside the program.
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/threads/poller.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/verbs/link_pages.h"
#include "csrc/transport/verbs/port_choice.h"
#include "tests/fakes/verbs_ends.h"
#include "tests/fuzz/require.h"

namespace {

using namespace pccl::transport;
using namespace pccl::transport::verbs;

constexpr std::uint32_t kRing = pccl::fakes::VerbsEnds::kRing;

/// Reader of an input; what is missing is 0.
class Input {
   public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
    [[nodiscard]] bool is_empty() const { return rest_.empty(); }
    template <typename T>
    T next() {
        T value{};
        const std::size_t count = std::min(sizeof value, rest_.size());
        if (count > 0) std::memcpy(&value, rest_.data(), count);
        rest_ = rest_.subspan(count);
        return value;
    }

   private:
    std::span<const std::uint8_t> rest_;
};

Waiter& waiter() {
    static const std::unique_ptr<Waiter> made = Waiter::create().value();
    return *made;
}

const std::vector<std::shared_ptr<Port>>& ports() {
    static const auto chosen = [] {
        const auto program = std::filesystem::read_symlink("/proc/self/exe");
        const auto library = program.parent_path() / "fakes/verbs/libibverbs.so.1";
        ::setenv("PCCL_IBVERBS_LIBRARY", library.c_str(), 1);
        ::setenv("FAKE_VERBS_DEVICES", "mlx5_0", 1);
        ::setenv("FAKE_VERBS_RETRY_MS", "1", 1);
        return choose_ports({.filter = HcaFilter::parse("").value()}, waiter()).value();
    }();
    return chosen;
}

/// Returns how many queue pairs a link has: a link of one keeps stricter rules.
int pairs_by(std::uint8_t first) { return (first >> 1 & 1) != 0 ? 1 : 2; }

/// Puts bytes of the input into a mailbox.
void fill_mailbox(Input& input, std::byte* mailbox) {
    const auto bytes = input.next<std::uint8_t>();
    for (std::size_t i = 0; i < bytes; ++i)
        mailbox[i] = static_cast<std::byte>(input.next<std::uint8_t>());
}

std::shared_ptr<pccl::Poller> helper() {
    static const auto made = std::make_shared<pccl::Poller>(
        pccl::PollerOptions{.name = "helper", .interval = std::chrono::milliseconds(1)});
    return made;
}

void play_receiver(Input& input, int pairs) {
    pccl::fakes::VerbsSenderAlone sender(ports(), pairs, waiter(), helper());
    pccl::fakes::VerbsEnds& ends = sender.ends;
    VerbsSendLink& link = *sender.link;
    const std::vector<std::byte> bytes(2 * kRing);
    while (!input.is_empty()) {
        const auto step = input.next<std::uint8_t>();
        const auto channel = static_cast<pccl::ChannelId>(step >> 7);
        const std::size_t lane = (step >> 6 & 1) % ends.peer.count();
        switch (step % 8) {
            case 0:
                sender.credits().consumed[static_cast<std::size_t>(channel)] =
                    input.next<std::uint64_t>();
                break;
            case 1:
                sender.credits().receives[lane] = input.next<std::uint16_t>();
                break;
            case 2:
            case 3: {
                const auto wanted = std::span(bytes).first(input.next<std::uint16_t>());
                const auto sent = link.send(channel, wanted, Flush::kNow);
                require(!sent.is_ok() || *sent <= wanted.size());
                break;
            }
            case 4:
                fill_mailbox(input, sender.page + kMailbox);
                break;
            case 5:
                sender.write_immediate(input.next<std::uint32_t>(), lane);
                break;
            case 6:
                ends.peer[lane].pair().fail();
                break;
            default:
                ends.take_up();
                static_cast<void>(link.flush(channel));
                static_cast<void>(link.look());
        }
        ends.carry_on();
    }
    // The end of a link waits for what is not delivered, as long as it has a lane.
    ends.take_up();
    for (std::uint32_t lost = 0; lost < ends.peer.count(); ++lost)
        for (std::size_t lane = 0; lane < ends.peer.count(); ++lane)
            sender.write_immediate(htobe32(kLaneDown + lost), lane);
    for (int i = 0; i < 4; ++i) ends.carry_on();
}

void play_sender(Input& input, int pairs) {
    pccl::fakes::VerbsReceiverAlone receiver(ports(), pairs, waiter());
    pccl::fakes::VerbsEnds& ends = receiver.ends;
    VerbsRecvLink& link = *receiver.link;
    while (!input.is_empty()) {
        const auto step = input.next<std::uint8_t>();
        const auto channel = static_cast<pccl::ChannelId>(step >> 7);
        const std::size_t lane = (step >> 6 & 1) % ends.peer.count();
        LaneSlot& slot = receiver.slot(lane);
        auto& tail = slot.tails[static_cast<std::size_t>(channel)];
        switch (step % 8) {
            case 0:
                tail.begin = input.next<std::uint64_t>();
                tail.end = input.next<std::uint64_t>();
                break;
            case 1:
            case 2: {
                auto numbers = input.next<std::array<std::uint32_t, 3>>();
                const PeerRange& ring = receiver.memory[static_cast<std::size_t>(channel)];
                numbers[0] = static_cast<std::uint32_t>(numbers[0] % ring.bytes);
                numbers[1] = static_cast<std::uint32_t>(numbers[1] % (ring.bytes - numbers[0] + 1));
                receiver.write(ring, numbers, lane);
                break;
            }
            case 4:
                fill_mailbox(input, slot.mailbox.data());
                break;
            case 5:  // an immediate alone
                receiver.write(receiver.memory.back(), {0, 0, input.next<std::uint32_t>()}, lane);
                break;
            case 6:
                ends.peer[lane].pair().fail();
                break;
            default: {
                ends.take_up();
                const auto arrived = link.peek(channel);
                if (!arrived.is_ok()) break;
                require(arrived->size() <= kRing);
                const std::size_t taken = input.next<std::uint16_t>() % (arrived->size() + 1);
                for (const std::byte each : arrived->first(taken)) require(each == std::byte{0});
                if (taken > 0) link.consume(channel, taken);
            }
        }
        ends.carry_on();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const auto first = input.next<std::uint8_t>();
    if (first % 2 == 0)
        play_receiver(input, pairs_by(first));
    else
        play_sender(input, pairs_by(first));
    return 0;
}
