// SPDX-License-Identifier: Apache-2.0

// What a message of 4 KiB costs its hosts, over RDMA and over TCP: verbs_cost
//
// One thread sends and receives messages, on the fake libibverbs and on the loopback interface; the
// result is its CPU time. The time inside the fake is left out, as a device works there. Exit
// status 1 where RDMA takes half of TCP's time or more.
#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>
#include <vector>

#include "tests/cpp/transport/verbs_links.h"

namespace {

using namespace pccl;             // NOLINT(google-build-using-namespace): one program
using namespace pccl::transport;  // NOLINT(google-build-using-namespace): one program

constexpr std::size_t kBytes = 4 * kKiB;
constexpr int kTogether = 32;  // messages that are sent before they are received
constexpr int kRounds = 300;   // of a batch
constexpr int kCostBatches = 15;
constexpr double kMostOfTcp = 0.5;

double thread_nanoseconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// CPU time outside of the fake.
double own_nanoseconds() {
    return thread_nanoseconds() - static_cast<double>(fakes::fake_counters().inside_ns);
}

void send(SendLink& link, Bytes bytes) {
    while (!bytes.empty()) {
        const auto sent = link.send(kCollectiveChannel, bytes, Flush::kNow);
        if (!sent.is_ok()) std::abort();
        bytes = bytes.subspan(*sent);
    }
}

void receive(RecvLink& link, MutableBytes into) {
    while (!into.empty()) {
        const auto received = link.receive(kCollectiveChannel, into);
        if (!received.is_ok()) std::abort();
        into = into.subspan(*received);
    }
}

/// Nanoseconds of a message.
struct MessageCost {
    double sender = 0;
    double receiver = 0;

    [[nodiscard]] double all() const { return sender + receiver; }
};

MessageCost cost_of_batch(const verbs::VerbsStream& stream) {
    const std::vector<std::byte> message(kBytes);
    std::vector<std::byte> received(kBytes);
    MessageCost cost;
    for (int round = 0; round < kRounds; ++round) {
        const double begun = own_nanoseconds();
        for (int i = 0; i < kTogether; ++i) send(*stream.out, message);
        const double sent = own_nanoseconds();
        for (int i = 0; i < kTogether; ++i) receive(*stream.in, received);
        cost.sender += sent - begun;
        cost.receiver += own_nanoseconds() - sent;
    }
    cost.sender /= kRounds * kTogether;
    cost.receiver /= kRounds * kTogether;
    return cost;
}

MessageCost cost_over(const char* name, const fakes::MemberMaker& make) {
    verbs::VerbsHost first(0, make);
    verbs::VerbsHost second(1, make);
    const verbs::VerbsStream stream = verbs::make_stream(first, second);
    std::vector<MessageCost> batches;
    for (int batch = 0; batch < kCostBatches; ++batch) batches.push_back(cost_of_batch(stream));
    std::ranges::nth_element(batches, batches.begin() + kCostBatches / 2, {}, &MessageCost::all);
    const MessageCost median = batches[kCostBatches / 2];
    std::cout << name << ": " << median.all() << " ns a message of " << kBytes << " bytes ("
              << median.sender << " of the sender, " << median.receiver << " of the receiver)\n";
    return median;
}

}  // namespace

int main() {
    PCCL_FAKE_VERBS(measure_time)(FAKE_VERBS_TIME_TICKS);
    const MessageCost tcp =
        cost_over("TCP", [](Waiter& waiter) { return fakes::tcp_member(waiter, "127.0.0.0/8"); });
    const MessageCost rdma = cost_over("RDMA", verbs::verbs_maker(verbs::one_port()));
    const double share = rdma.all() / tcp.all();
    std::cout << "RDMA takes " << 100 * share << " % of TCP's time\n";
    return share < kMostOfTcp ? 0 : 1;
}
