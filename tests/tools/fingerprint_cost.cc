// SPDX-License-Identifier: Apache-2.0

// What the fingerprint of a collective costs: fingerprint_cost
//
// Two ranks of one host (threads, each with a runtime of its own) reduce 1 KiB of float32 on their
// segment. Next to that stands what one rank does for the fingerprint in each: writing its header,
// comparing the other's, and the digest of the history. The header lies in a cache line that the
// other rank reads anyway. Exit status 1 above 3 %.
#include <algorithm>
#include <array>
#include <atomic>
#include <iostream>
#include <vector>

#include "csrc/collective/fingerprint.h"
#include "tests/cpp/comm/ranks.h"

namespace {

using namespace pccl;  // NOLINT(google-build-using-namespace): one program

constexpr int kBatches = 15;
constexpr int kCalls = 20'000;
constexpr double kMostPercent = 3.0;

double median(std::vector<double> values) {
    std::ranges::nth_element(values, values.begin() + kBatches / 2);
    return values[kBatches / 2];
}

/// Nanoseconds for one `call`.
template <typename Call>
double time_of(const Call& call) {
    std::vector<double> batches;
    for (int batch = 0; batch < kBatches; ++batch) {
        const TimePoint begun = system_clock().now();
        for (int i = 0; i < kCalls; ++i) call();
        const Duration passed = system_clock().now() - begun;
        batches.push_back(static_cast<double>(passed.count()) / kCalls);
    }
    return median(std::move(batches));
}

double time_of_all_reduce() {
    double nanoseconds = 0;
    comm::run_ranks({.size = 2}, [&](comm::CommunicatorImpl& comm) {
        std::array<float, 256> values{};
        const Block block{reinterpret_cast<std::byte*>(values.data()), values.size()};
        const double own = time_of(
            [&] { static_cast<void>(comm.run({.inputs = {&block, 1}, .outputs = {&block, 1}})); });
        if (comm.rank() == 0) nanoseconds = own;
    });
    return nanoseconds;
}

double time_of_fingerprint() {
    abi::CollectiveHeader own{};
    own.magic = abi::kCollectiveMagic;
    own.count = 256;
    abi::CollectiveHeader line{};
    bool equal = true;
    const double nanoseconds = time_of([&] {
        own.sequence += 1;
        own.history = pccl::history_after(own);
        line = own;
        std::atomic_signal_fence(std::memory_order_seq_cst);  // it is memory, for all one knows
        equal &= pccl::compare(own, line, {.self = 0, .peer = 1}).is_ok();
    });
    return equal ? nanoseconds : -1;
}

}  // namespace

int main() {
    const double all = time_of_all_reduce();
    const double own = time_of_fingerprint();
    const double percent = 100 * own / all;
    std::cout << "all_reduce of 1 KiB, 2 ranks: " << all << " ns; fingerprint: " << own << " ns, "
              << percent << " %\n";
    return own > 0 && percent <= kMostPercent ? 0 : 1;
}
