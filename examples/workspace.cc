// SPDX-License-Identifier: Apache-2.0

// PCCL from C++: every rank writes into the memory of its right neighbour, and prints what it got.
//
//     workspace 0 2 tcp://127.0.0.1:29500
//     workspace 1 2 tcp://127.0.0.1:29500
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include <pccl/communicator.h>
#include <pccl/operator.h>
#include <pccl/store.h>

namespace {

using pccl::Block;
using pccl::Communicator;
using pccl::Deadline;
using pccl::Operator;
using pccl::Status;

constexpr std::size_t kCount = 1000;

std::span<float> floats(std::span<std::byte> memory) {
    return {reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
}

Status pass_to_the_right(int rank, int size, const std::string& rendezvous) {
    PCCL_ASSIGN_OR_RETURN(
        const auto store,
        pccl::open_store(rendezvous, rank, size, Deadline::after(std::chrono::seconds(30))));
    PCCL_ASSIGN_OR_RETURN(const auto comm,
                          Communicator::create({.rank = rank, .size = size, .store = store}));
    PCCL_ASSIGN_OR_RETURN(const auto mine,
                          comm->allocate_on_all_ranks("halo", kCount * sizeof(float)));
    PCCL_ASSIGN_OR_RETURN(const auto right, comm->map_remote("halo", (rank + 1) % size));
    floats(right)[kCount - 1] = static_cast<float>(rank + 1);
    PCCL_TRY(comm->barrier());
    std::printf("rank %d of %d: its neighbour wrote %g\n", rank, size, floats(mine)[kCount - 1]);

    const Block block{mine.data(), kCount};
    PCCL_ASSIGN_OR_RETURN(const Operator sum,
                          Operator::create(comm, {.inputs = {&block, 1}, .outputs = {&block, 1}}));
    for (int round = 0; round < 3; ++round) PCCL_TRY(sum.run());
    std::printf("rank %d of %d: three sums make %g\n", rank, size, floats(mine)[kCount - 1]);
    return comm->barrier();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: workspace RANK SIZE RENDEZVOUS\n");
        return 2;
    }
    const Status status = pass_to_the_right(std::atoi(argv[1]), std::atoi(argv[2]), argv[3]);
    if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return status.is_ok() ? 0 : 1;
}
