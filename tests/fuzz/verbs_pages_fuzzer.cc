// SPDX-License-Identifier: Apache-2.0

// A peer of an RDMA link that writes any counters into the pages of the link, and any immediates:
// the link moves no byte beyond its rings, and ends with an error or goes on. Both ends are in this
// process, on the fake libibverbs, which is in fakes/verbs beside the program.
#include <endian.h>
#include <sys/socket.h>
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
#include "csrc/transport/verbs/make_connector.h"
#include "csrc/transport/verbs/port_choice.h"
#include "csrc/transport/verbs/recv_link.h"
#include "csrc/transport/verbs/send_link.h"
#include "tests/fuzz/require.h"

namespace {

using namespace pccl::transport;
using namespace pccl::transport::verbs;

constexpr std::uint32_t kRing = LinkEnd::kLeastRing;
constexpr QueueDepths kPairDepths{.sends = 128, .receives = 64};
constexpr std::size_t kMostPosted = 32;  // before the link takes completions
constexpr int kPairs = 2;

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

LinkMemory memory_of(const Lanes& lanes, bool is_ring) {
    auto mapping = is_ring ? Mapping::ring(kRing) : Mapping::anonymous(kPageBytes);
    return LinkMemory::create(std::move(mapping).value(), lanes.adapters(), Access::kPeerWrite)
        .value();
}

std::array<LinkMemory, kChannels> rings_of(const Lanes& lanes) {
    return {memory_of(lanes, true), memory_of(lanes, true)};
}

void connect(Lanes& lanes, const Lanes& to) {
    lanes.match(to.ends());
    const auto connector = make_connector(ConnectWay::kDirect, Connector::Role::kInitiator);
    require(connector->start(lanes.pairs(), to.ends()).is_ok());
}

/// Two connected ends: the link under test has `here`.
struct Ends {
    Ends() {
        require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) == 0);
        peer_socket.reset(sockets[1]);
        for (Lanes* const each : {&here, &peer})
            for (std::size_t i = 0; i < kPairs; ++i)
                require((*each)[i].pair().post_receives(kPairDepths.receives).is_ok());
        connect(here, peer);
        connect(peer, here);
    }
    PeerWatch watch() {
        return {{.self = 0, .leaver = 1, .ranks = 2},
                WatchedSocket(pccl::UniqueFd(sockets[0]), waiter())};
    }
    /// Posts the peer's receives again, as a correct peer does.
    void carry_on() {
        for (std::size_t i = 0; i < kPairs; ++i) {
            int received = 0;
            static_cast<void>(peer[i].poll([&](const WorkCompletion&) { ++received; }));
            if (received > 0) static_cast<void>(peer[i].pair().post_receives(received));
        }
    }
    /// Writes `bytes` bytes at `offset` of memory of the link, with any immediate, unless many
    /// writes have been posted since the link took some.
    void write(const LinkMemory& from, const PeerRange& into,
               const std::array<std::uint32_t, 3>& numbers, std::size_t index) {
        Lane& lane = peer[index];
        if (++posted > kMostPosted || lane.free_slots() < 1) return;
        const std::uint64_t offset = numbers[0] % into.bytes;
        ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(from.data()),
                      .length = static_cast<std::uint32_t>(numbers[1] % (into.bytes - offset + 1)),
                      .lkey = from.local_key(0)};
        ibv_send_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request.imm_data = numbers[2];
        request.wr.rdma.remote_addr = into.address + offset;
        request.wr.rdma.rkey = into.keys[0];
        lane.prepare(request, true);
        static_cast<void>(lane.post(request));
    }

    std::size_t posted = 0;
    std::array<int, 2> sockets{};
    pccl::UniqueFd peer_socket;
    Lanes here = Lanes::create(ports(), kPairs, kPairDepths).value();
    Lanes peer = Lanes::create(ports(), kPairs, kPairDepths).value();
};

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

void play_receiver(Input& input) {
    Ends ends;
    const auto rings = rings_of(ends.peer);
    const LinkMemory slots = memory_of(ends.peer, false);
    const LinkMemory source = memory_of(ends.peer, false);
    LinkMemory credits = memory_of(ends.here, false);
    std::byte* const page = credits.data();
    const PeerRange page_range = credits.range();
    auto staging = rings_of(ends.here);
    LinkEnd receiver{.ring_bytes = kRing,
                     .receives = static_cast<std::uint32_t>(kPairDepths.receives),
                     .memory = {rings[0].range(), rings[1].range(), slots.range()},
                     .lanes = ends.peer.ends()};
    PeerWatch watch = ends.watch();
    VerbsSendLink link({.peer = 1,
                        .peer_name = "rank 1",
                        .lanes = std::move(ends.here),
                        .credits = std::move(credits),
                        .staging = std::move(staging),
                        .receiver = std::move(receiver),
                        .watch = std::move(watch),
                        .helper = helper()});
    const std::vector<std::byte> bytes(2 * kRing);
    while (!input.is_empty()) {
        const auto step = input.next<std::uint8_t>();
        const auto channel = static_cast<pccl::ChannelId>(step >> 7);
        const std::size_t lane = step >> 6 & 1;
        auto& counters = *reinterpret_cast<CreditPage*>(page);
        switch (step % 8) {
            case 0:
                counters.consumed[static_cast<std::size_t>(channel)] = input.next<std::uint64_t>();
                break;
            case 1:
                counters.receives[lane] = input.next<std::uint16_t>();
                break;
            case 2:
            case 3: {
                const auto wanted = std::span(bytes).first(input.next<std::uint16_t>());
                const auto sent = link.send(channel, wanted, Flush::kNow);
                require(!sent.is_ok() || *sent <= wanted.size());
                break;
            }
            case 4:
                fill_mailbox(input, page + kMailbox);
                break;
            case 5:  // an immediate alone
                ends.write(source, page_range, {0, 0, input.next<std::uint32_t>()}, lane);
                break;
            case 6:
                ends.peer[lane].pair().fail();
                break;
            default:
                ends.posted = 0;
                static_cast<void>(link.flush(channel));
                static_cast<void>(link.look());
        }
        ends.carry_on();
    }
    // The end of a link waits for what is not delivered, as long as it has a lane.
    ends.posted = 0;
    for (const std::uint32_t lost : {0U, 1U})
        for (const std::size_t lane : {0U, 1U})
            ends.write(source, page_range, {0, 0, htobe32(kLaneDown + lost)}, lane);
    for (int i = 0; i < 4; ++i) ends.carry_on();
}

void play_sender(Input& input) {
    Ends ends;
    auto rings = rings_of(ends.here);
    LinkMemory slots = memory_of(ends.here, false);
    std::byte* const page = slots.data();
    LinkMemory credits = memory_of(ends.here, false);
    const LinkMemory credited = memory_of(ends.peer, false);
    const LinkMemory source = memory_of(ends.peer, true);
    LinkEnd here{.ring_bytes = kRing,
                 .receives = static_cast<std::uint32_t>(kPairDepths.receives),
                 .memory = {rings[0].range(), rings[1].range(), slots.range()},
                 .lanes = ends.here.ends()};
    const std::vector<PeerRange> memory = here.memory;
    PeerWatch watch = ends.watch();
    VerbsRecvLink link({.peer = 1,
                        .peer_name = "rank 1",
                        .lanes = std::move(ends.here),
                        .rings = std::move(rings),
                        .slots = std::move(slots),
                        .credits = std::move(credits),
                        .here = std::move(here),
                        .sender = credited.range(),
                        .watch = std::move(watch)});
    while (!input.is_empty()) {
        const auto step = input.next<std::uint8_t>();
        const auto channel = static_cast<pccl::ChannelId>(step >> 7);
        const std::size_t lane = step >> 6 & 1;
        LaneSlot& slot = reinterpret_cast<LaneSlot*>(page)[lane];
        auto& tail = slot.tails[static_cast<std::size_t>(channel)];
        switch (step % 8) {
            case 0:
                tail.begin = input.next<std::uint64_t>();
                tail.end = input.next<std::uint64_t>();
                break;
            case 1:
            case 2: {
                const auto numbers = input.next<std::array<std::uint32_t, 3>>();
                ends.write(source, memory[static_cast<std::size_t>(channel)], numbers, lane);
                break;
            }
            case 4:
                fill_mailbox(input, slot.mailbox.data());
                break;
            case 5:  // an immediate alone
                ends.write(source, memory.back(), {0, 0, input.next<std::uint32_t>()}, lane);
                break;
            case 6:
                ends.peer[lane].pair().fail();
                break;
            default: {
                ends.posted = 0;
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
    if (input.next<std::uint8_t>() % 2 == 0)
        play_receiver(input);
    else
        play_sender(input);
    return 0;
}
