// SPDX-License-Identifier: Apache-2.0

// PCCL from C++: every rank contributes a vector of its rank, and prints the sum. In two shells:
//
//     all_reduce 0 2 tcp://127.0.0.1:29500
//     all_reduce 1 2 tcp://127.0.0.1:29500
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <pccl/communicator.h>
#include <pccl/store.h>

namespace {

using pccl::Block;
using pccl::Communicator;
using pccl::Deadline;
using pccl::Status;

Status sum_of_ranks(int rank, int size, const std::string& rendezvous) {
    PCCL_ASSIGN_OR_RETURN(
        const auto store,
        pccl::open_store(rendezvous, rank, size, Deadline::after(std::chrono::seconds(30))));
    PCCL_ASSIGN_OR_RETURN(const auto comm,
                          Communicator::create({.rank = rank, .size = size, .store = store}));
    std::vector<float> values(1000, static_cast<float>(rank));
    const Block block{reinterpret_cast<std::byte*>(values.data()), values.size()};
    PCCL_TRY(comm->run({.inputs = {&block, 1}, .outputs = {&block, 1}}));
    std::printf("rank %d of %d: sum of ranks is %g\n", rank, size, values.front());
    return comm->barrier();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: all_reduce RANK SIZE RENDEZVOUS\n");
        return 2;
    }
    const Status status = sum_of_ranks(std::atoi(argv[1]), std::atoi(argv[2]), argv[3]);
    if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return status.is_ok() ? 0 : 1;
}
