// SPDX-License-Identifier: Apache-2.0

// Speed of a plug-in, and its resources.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "csrc/base/text/text.h"
#include "tests/netplugin/buffer.h"
#include "tests/netplugin/cases.h"

namespace pccl::netplugin {

void measure_latency(Side& side, const Measurement& wanted) {
    side.begin("latency");
    using Clock = std::chrono::steady_clock;
    const Comms comms = side.connect_both();
    for (const std::size_t bytes : wanted.sizes) {
        const std::size_t rounds =
            std::clamp<std::size_t>(wanted.bytes / std::max<std::size_t>(bytes, 1), 20, 20000);
        const Buffer out(side, comms.send, bytes);
        const Buffer in(side, comms.recv, bytes);
        const auto play = [&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                if (side.is_sender()) static_cast<void>(side.wait(out.isend(bytes), 1));
                static_cast<void>(side.wait(in.irecv(bytes), 1));
                if (!side.is_sender()) static_cast<void>(side.wait(out.isend(bytes), 1));
            }
        };
        play(rounds / 10 + 5);
        const auto begin = Clock::now();
        play(rounds);
        const std::chrono::duration<double, std::micro> taken = Clock::now() - begin;
        if (side.is_sender())
            std::printf("latency %zu %.2f us\n", bytes,
                        taken.count() / 2 / static_cast<double>(rounds));
    }
    side.close_both(comms);
}

namespace {

/// Sends `count` messages, and awaits a byte from the receiver at the end.
void stream(const Side& side, const Comms& comms, std::size_t bytes, std::size_t count,
            std::size_t window) {
    const Buffer data(side, side.is_sender() ? comms.send : comms.recv, bytes);
    const Buffer end(side, side.is_sender() ? comms.recv : comms.send, 1);
    std::deque<void*> requests;
    for (std::size_t i = 0; i < count; ++i) {
        if (requests.size() == window) {
            static_cast<void>(side.wait(requests.front(), 1));
            requests.pop_front();
        }
        requests.push_back(side.is_sender() ? data.isend(bytes) : data.irecv(bytes));
    }
    for (void* const request : requests) static_cast<void>(side.wait(request, 1));
    static_cast<void>(side.wait(side.is_sender() ? end.irecv(1) : end.isend(1), 1));
}

}  // namespace

void measure_throughput(Side& side, const Measurement& wanted) {
    side.begin("throughput");
    using Clock = std::chrono::steady_clock;
    const Comms comms = side.connect_both();
    for (const std::size_t bytes : wanted.sizes) {
        const std::size_t count =
            std::clamp<std::size_t>(wanted.bytes / std::max<std::size_t>(bytes, 1), 1, 200000);
        stream(side, comms, bytes, std::min<std::size_t>(count, 8), wanted.window);
        const auto begin = Clock::now();
        stream(side, comms, bytes, count, wanted.window);
        const std::chrono::duration<double> taken = Clock::now() - begin;
        if (!side.is_sender())
            std::printf("throughput %zu %.1f MB/s\n", bytes,
                        static_cast<double>(bytes * count) / taken.count() / 1e6);
    }
    side.close_both(comms);
}

namespace {

/// Moves a message in each direction.
void carry_one(const Side& side, const Comms& comms) {
    constexpr std::size_t kBytes = 65536;
    const Buffer out(side, comms.send, kBytes);
    const Buffer in(side, comms.recv, kBytes);
    // In turn: a plug-in may move bytes inside of test() alone.
    std::vector<void*> requests{out.isend(kBytes), in.irecv(kBytes)};
    const Limit limit(side.timeout_s());
    while (!requests.empty() && limit.goes_on())
        std::erase_if(requests, [&](void* request) {
            Done done{.sizes = {-1}};
            side.expect(side.test(request, done), "test");
            return done.is_done;
        });
    if (!requests.empty()) side.fail("a message does not arrive in time");
}

struct Resources {
    long descriptors = 0;
    long threads = 0;
    long resident_kib = 0;

    static Resources now() {
        Resources found;
        const auto entries = [](const char* folder) {
            return static_cast<long>(std::distance(std::filesystem::directory_iterator(folder),
                                                   std::filesystem::directory_iterator()));
        };
        found.descriptors = entries("/proc/self/fd");
        found.threads = entries("/proc/self/task");
        std::ifstream status("/proc/self/status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("VmRSS:")) found.resident_kib = std::stol(line.substr(6));
        return found;
    }
};

}  // namespace

void count_resources(Side& side, std::size_t peers) {
    side.begin("resources");
    const Comms first = side.connect_both();
    carry_one(side, first);  // its costs occur once
    const Resources before = Resources::now();
    std::vector<Comms> all;
    for (std::size_t i = 0; i < peers; ++i) {
        all.push_back(side.connect_both());
        carry_one(side, all.back());
    }
    const Resources now = Resources::now();
    side.meet();
    side.note(concat(side.role_name(), ": ", peers, " peers, ", 2 * peers,
                     " communicators: ", now.descriptors - before.descriptors, " descriptors, ",
                     now.threads - before.threads, " threads, ",
                     now.resident_kib - before.resident_kib, " KiB of memory"));
    const auto of_sockets = [&](std::size_t per_thread, std::size_t threads) {
        return concat(2 * peers * (1 + per_thread * threads), " descriptors, up to ",
                      2 * peers * threads, " threads with ", per_thread, " x ", threads);
    };
    if (side.is_sender())
        side.note(
            concat("NCCL's socket transport: 1 + NCCL_NSOCKS_PERTHREAD x "
                   "NCCL_SOCKET_NTHREADS descriptors for each communicator: ",
                   of_sockets(1, 0), " (its default), ", of_sockets(8, 2)));
    all.push_back(first);
    for (const Comms& each : all) side.close_both(each);
}

}  // namespace pccl::netplugin
