// SPDX-License-Identifier: Apache-2.0

// Explores faults of every schedule by seed: chaos [--runs N] [--from SEED] [--seed SEED]
//
// Prints each seed whose run was wrong; --seed shows one run again. Exit status 1 if one was wrong.
#include "tests/cpp/comm/chaos.h"

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace {

std::uint64_t number_after(int argc, char** argv, std::string_view name, std::uint64_t otherwise) {
    for (int i = 1; i + 1 < argc; ++i)
        if (argv[i] == name) return std::strtoull(argv[i + 1], nullptr, 10);
    return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
    using pccl::comm::testing::explore;
    const std::uint64_t only = number_after(argc, argv, "--seed", 0);
    const std::uint64_t from = only != 0 ? only : number_after(argc, argv, "--from", 1);
    const std::uint64_t runs = only != 0 ? 1 : number_after(argc, argv, "--runs", 10'000);
    std::uint64_t wrong = 0;
    std::uint64_t disturbed = 0;
    for (std::uint64_t seed = from; seed < from + runs; ++seed) {
        const auto run = explore(seed);
        disturbed += run.disturbed ? 1 : 0;
        if (only != 0) std::cout << run.what << (run.disturbed ? ": disturbed\n" : ": complete\n");
        if (run.fault.empty()) continue;
        ++wrong;
        std::cout << "seed " << seed << ": " << run.what << ": " << run.fault << '\n';
    }
    std::cout << runs << " runs, " << disturbed << " ended by a fault, " << wrong << " wrong\n";
    return wrong == 0 ? 0 : 1;
}
