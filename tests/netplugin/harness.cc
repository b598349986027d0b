// SPDX-License-Identifier: Apache-2.0

// Drives a net plug-in of NCCL's ABI from two processes, as NCCL does.
//
//     net_harness PLUGIN [--largest BYTES] [--timeout SECONDS] [--measure]
//
// Prints one line for each case, and exits with 1 after the first failure. README.md lists the
// cases.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/text/text.h"
#include "tests/netplugin/side.h"

namespace pccl::netplugin {
namespace {

struct Options {
    std::string plugin;
    std::size_t largest = std::size_t{1} << 26U;
    double timeout_s = 30;
    bool measures = false;
};

constexpr int kTag = 0x77;

void properties(Side& side) {
    side.begin("properties");
    if (!side.is_sender()) return;
    const DeviceProperties& device = side.device();
    side.note(concat(side.library().symbol, " ", side.table().name(), ": device ", device.name,
                     ", port ", device.port, ", ", device.megabits, " Mbit/s, up to ",
                     device.max_recvs, " receives"));
}

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

/// Prints the time of an 8-byte message, there and back, and the throughput of long ones.
void measure(Side& side, std::size_t largest) {
    side.begin("measure");
    using Clock = std::chrono::steady_clock;
    void* const comm = side.connect();
    const PageMemory memory(largest);
    void* const mhandle = side.reg(comm, memory);
    for (std::size_t bytes = 8; bytes <= largest; bytes *= 8) {
        const std::size_t rounds =
            std::clamp<std::size_t>((std::size_t{1} << 28U) / bytes, 8, 2000);
        side.meet();
        const auto start = Clock::now();
        std::deque<void*> requests;
        for (std::size_t i = 0; i < rounds; ++i) {
            const std::array recv{GroupedRecv{
                .data = memory.data(), .bytes = bytes, .tag = kTag, .mhandle = mhandle}};
            requests.push_back(side.is_sender()
                                   ? side.isend(comm, {memory.data(), bytes}, kTag, mhandle)
                                   : side.irecv(comm, recv));
            if (requests.size() < 4) continue;
            static_cast<void>(side.wait(requests.front(), 1));
            requests.pop_front();
        }
        for (void* const request : requests) static_cast<void>(side.wait(request, 1));
        const std::chrono::duration<double> took = Clock::now() - start;
        if (!side.is_sender())
            side.note(concat(bytes, " bytes: ", took.count() / static_cast<double>(rounds) * 1e6,
                             " us each, ", static_cast<double>(bytes * rounds) / took.count() / 1e6,
                             " MB/s"));
    }
    side.dereg(comm, mhandle);
    side.close(comm);
}

int run(const Options& options, int role, int socket) {
    Side side(options.plugin, role, socket, options.timeout_s);
    properties(side);
    if (options.measures) {
        measure(side, options.largest);
        return 0;
    }
    const auto passed = [&](const char* name) {
        side.meet();
        side.begin(name);
        if (side.is_sender()) side.note("ok");
    };
    sizes(side, options.largest);
    passed("sizes");
    many_requests(side);
    passed("requests in flight");
    grouped(side);
    passed("grouped receives");
    early_close(side);
    passed("early close");
    return 0;
}

/// Both processes are children, which open the plug-in by themselves.
int run_both(const Options& options) {
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) return 2;
    std::array<pid_t, 2> children{};
    for (std::size_t role = 0; role < children.size(); ++role) {
        children.at(role) = ::fork();
        if (children.at(role) != 0) continue;
        ::close(sockets.at(1 - role));
        std::exit(run(options, static_cast<int>(role), sockets.at(role)));
    }
    for (const int socket : sockets) ::close(socket);
    int status = 0;
    for (std::size_t left = children.size(); left > 0; --left) {
        int state = 0;
        static_cast<void>(::wait(&state));
        if (WIFSIGNALED(state)) std::printf("FAIL: signal %d ends a process\n", WTERMSIG(state));
        if (state != 0) status = 1;
    }
    return status;
}

bool parse(int count, char** arguments, Options& options) {
    if (count < 2) return false;
    options.plugin = arguments[1];
    for (int i = 2; i < count; ++i) {
        const std::string_view name = arguments[i];
        if (name == "--measure")
            options.measures = true;
        else if (i + 1 == count)
            return false;
        else if (name == "--largest")
            options.largest = std::strtoull(arguments[++i], nullptr, 10);
        else if (name == "--timeout")
            options.timeout_s = std::strtod(arguments[++i], nullptr);
        else
            return false;
    }
    return options.largest >= 1 << 20;
}

}  // namespace
}  // namespace pccl::netplugin

int main(int count, char** arguments) {
    pccl::netplugin::Options options;
    if (pccl::netplugin::parse(count, arguments, options))
        return pccl::netplugin::run_both(options);
    std::fputs(
        "net_harness PLUGIN [--largest BYTES (1 MiB or more)] [--timeout SECONDS] [--measure]\n",
        stderr);
    return 2;
}
