// SPDX-License-Identifier: Apache-2.0
#include "tests/netplugin/cases.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>

#include "csrc/base/text/text.h"
#include "tests/netplugin/buffer.h"

namespace pccl::netplugin {
namespace {

constexpr std::byte kUntouched{0x55};
constexpr std::size_t kRoom = 8;  // of a receive, beyond its send

/// Moves one message; the receiver has room for `room` bytes.
void move(Side& side, void* comm, const PageMemory& memory, void* mhandle, std::size_t bytes,
          std::size_t room) {
    const auto seed = static_cast<unsigned>(bytes);
    if (side.is_sender()) {
        memory.fill(seed, bytes);
        static_cast<void>(side.wait(side.isend(comm, {memory.data(), bytes}, kTag, mhandle), 1));
        return;
    }
    const std::array recv{
        GroupedRecv{.data = memory.data(), .bytes = room, .tag = kTag, .mhandle = mhandle}};
    const Done done = side.wait(side.irecv(comm, recv), 1);
    const std::size_t wrong = memory.first_wrong(seed, bytes);
    if (wrong != bytes) side.fail(concat("byte ", wrong, " of ", bytes, " is wrong"));
    if (done.sizes[0] >= 0 && static_cast<std::size_t>(done.sizes[0]) != bytes)
        side.fail(concat("test returns ", done.sizes[0], " for ", bytes, " bytes"));
}

void check_exchanged(const Side& side, const PageMemory& memory, unsigned seed, std::size_t bytes) {
    const std::size_t wrong = memory.first_wrong(seed, bytes);
    if (wrong != bytes) side.fail(concat("byte ", wrong, " of ", bytes, " is wrong"));
    for (std::size_t i = bytes; i < bytes + kRoom; ++i)
        if (memory.data()[i] != kUntouched)
            side.fail(concat("a message of ", bytes, " bytes has changed byte ", i));
}

/// Sends and receives `window` messages at a time.
void exchange_some(const Side& side, const Comms& comms, std::size_t bytes, std::size_t window,
                   int hold_ms) {
    std::vector<Buffer> out;
    std::vector<Buffer> in;
    std::deque<void*> sends;
    std::deque<void*> receives;
    for (unsigned i = 0; i < window; ++i) {
        out.emplace_back(side, comms.send, bytes);
        out.back().memory().fill(i, bytes);
        in.emplace_back(side, comms.recv, bytes + kRoom);
        std::fill_n(in.back().memory().data(), bytes + kRoom, kUntouched);
    }
    for (std::size_t i = 0; i < window; ++i) {
        if (hold_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(hold_ms));
        sends.push_back(out[i].isend(bytes));
        receives.push_back(in[i].irecv(bytes + kRoom));
    }
    const Limit limit(side.timeout_s());
    Done done{.sizes = {-1}};
    while (!sends.empty() || !receives.empty()) {
        if (!limit.goes_on()) side.fail("the messages do not arrive in time");
        if (!sends.empty()) {
            side.expect(side.test(sends.front(), done), "test");
            const auto& memory = out[window - sends.size()].memory();
            if (done.is_done) {
                std::fill_n(memory.data(), bytes, std::byte{0xee});  // the caller's again
                sends.pop_front();
            }
        }
        if (receives.empty()) continue;
        done.sizes[0] = -1;
        side.expect(side.test(receives.front(), done), "test");
        if (!done.is_done) continue;
        if (done.sizes[0] >= 0 && static_cast<std::size_t>(done.sizes[0]) != bytes)
            side.fail(concat("test returns ", done.sizes[0], " for ", bytes, " bytes"));
        const std::size_t index = window - receives.size();
        check_exchanged(side, in[index].memory(), static_cast<unsigned>(index), bytes);
        receives.pop_front();
    }
}

}  // namespace

void properties(Side& side) {
    side.begin("properties");
    if (!side.is_sender()) return;
    const DeviceProperties& device = side.device();
    side.note(concat(side.loaded().symbol, " ", side.table().name(), ": device ", device.name,
                     ", port ", device.port, ", ", device.megabits, " Mbit/s, up to ",
                     device.max_recvs, " receives"));
}

void sizes(Side& side, std::size_t largest) {
    side.begin("sizes");
    void* const comm = side.connect();
    const PageMemory memory(std::max<std::size_t>(largest, 4096));
    void* const mhandle = side.reg(comm, memory);
    std::vector<std::size_t> all{0, 1, 7, 8, 4095, 4096, 4097, 65536, 1048577, largest};
    std::erase_if(all, [&](std::size_t bytes) { return bytes > largest; });
    for (const std::size_t bytes : all) move(side, comm, memory, mhandle, bytes, bytes);
    side.begin("a receive that is longer than its send");
    move(side, comm, memory, mhandle, 1000, 4096);
    side.dereg(comm, mhandle);
    side.close(comm);
}

/// As many requests as a communicator may have; the receiver posts late, so that they pile up.
void many_requests(Side& side) {
    side.begin("requests in flight");
    constexpr std::size_t kBytes = 4096;
    constexpr std::size_t kRounds = 20;
    const auto most = static_cast<std::size_t>(side.table().max_requests());
    void* const comm = side.connect();
    const PageMemory memory(most * kBytes);
    void* const mhandle = side.reg(comm, memory);
    for (std::size_t round = 0; round < kRounds; ++round) {
        if (side.is_sender()) memory.fill(static_cast<unsigned>(round), memory.size());
        std::deque<void*> requests;
        for (std::size_t i = 0; i < most; ++i) {
            std::byte* const at = memory.data() + i * kBytes;
            const std::array recv{
                GroupedRecv{.data = at, .bytes = kBytes, .tag = kTag, .mhandle = mhandle}};
            // A plug-in may take fewer: the oldest is over first then.
            void* request = nullptr;
            if (side.is_sender()) {
                while ((request = side.try_isend(comm, {at, kBytes}, kTag, mhandle)) == nullptr &&
                       !requests.empty()) {
                    static_cast<void>(side.wait(requests.front(), 1));
                    requests.pop_front();
                }
                if (request == nullptr) request = side.isend(comm, {at, kBytes}, kTag, mhandle);
            } else {
                request = side.irecv(comm, recv);
            }
            requests.push_back(request);
        }
        for (void* const request : requests) static_cast<void>(side.wait(request, 1));
        const std::size_t wrong =
            side.is_sender() ? memory.size()
                             : memory.first_wrong(static_cast<unsigned>(round), memory.size());
        if (wrong != memory.size()) side.fail(concat("byte ", wrong, " is wrong"));
        side.meet();
    }
    side.dereg(comm, mhandle);
    side.close(comm);
}

/// The sender's tags are in another order than the receiver's.
void grouped(Side& side) {
    side.begin("grouped receives");
    const auto count = static_cast<std::size_t>(std::clamp(side.device().max_recvs, 1, 8));
    constexpr std::size_t kBytes = 8192;
    void* const comm = side.connect();
    std::vector<std::unique_ptr<PageMemory>> memories;
    std::vector<void*> mhandles;
    for (std::size_t i = 0; i < count; ++i) {
        memories.push_back(std::make_unique<PageMemory>(kBytes));
        mhandles.push_back(side.reg(comm, *memories.back()));
    }
    const auto length = [](std::size_t tag) { return kBytes - 100 * tag; };
    if (side.is_sender()) {
        std::vector<void*> requests;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t tag = count - 1 - i;
            memories[tag]->fill(static_cast<unsigned>(tag), kBytes);
            requests.push_back(side.isend(comm, {memories[tag]->data(), length(tag)},
                                          static_cast<int>(tag), mhandles[tag]));
        }
        for (void* const request : requests) static_cast<void>(side.wait(request, 1));
    } else {
        std::vector<GroupedRecv> recvs;
        for (std::size_t i = 0; i < count; ++i)
            recvs.push_back({.data = memories[i]->data(),
                             .bytes = kBytes,
                             .tag = static_cast<int>(i),
                             .mhandle = mhandles[i]});
        const Done done = side.wait(side.irecv(comm, recvs), count);
        for (std::size_t i = 0; i < count; ++i) {
            if (memories[i]->first_wrong(static_cast<unsigned>(i), length(i)) != length(i))
                side.fail(concat("the bytes of tag ", i, " are wrong"));
            if (done.sizes[i] >= 0 && static_cast<std::size_t>(done.sizes[i]) != length(i))
                side.fail(concat("test returns ", done.sizes[i], " for tag ", i));
        }
    }
    side.meet();
    for (std::size_t i = 0; i < count; ++i) side.dereg(comm, mhandles[i]);
    side.close(comm);
}

/// The receiver leaves with receives that nobody answers; then the sender with what nobody takes.
void early_close(Side& side) {
    side.begin("early close");
    for (const bool sender_leaves : {false, true}) {
        void* const comm = side.connect();
        const PageMemory memory(1 << 20);
        void* const mhandle = side.reg(comm, memory);
        if (side.is_sender() == sender_leaves) {
            const std::array recv{
                GroupedRecv{.data = memory.data(), .bytes = 4096, .tag = kTag, .mhandle = mhandle}};
            if (side.is_sender())
                static_cast<void>(
                    side.try_isend(comm, {memory.data(), memory.size()}, kTag, mhandle));
            else
                static_cast<void>(side.irecv(comm, recv));
        }
        side.meet();
        if (side.is_sender() == sender_leaves) {
            side.dereg(comm, mhandle);
            side.close(comm);
            side.meet();
            continue;
        }
        side.meet();
        side.dereg(comm, mhandle);
        side.close(comm);
    }
}

void exchange(Side& side, const Exchange& wanted) {
    side.begin("both directions");
    constexpr std::size_t kMostMemory = std::size_t{256} << 20U;
    const auto most = static_cast<std::size_t>(side.table().max_requests());
    const Comms comms = side.connect_both();
    for (const std::size_t bytes : wanted.sizes) {
        const std::size_t fitting = kMostMemory / std::max<std::size_t>(bytes, 1);
        const std::size_t window =
            std::clamp<std::size_t>(fitting, 1, std::min(wanted.window, most));
        exchange_some(side, comms, bytes, window, wanted.hold_ms);
    }
    exchange_some(side, comms, 4096, most, 0);
    side.meet();
    side.close_both(comms);
}

}  // namespace pccl::netplugin
