// SPDX-License-Identifier: Apache-2.0

// A capsule from C++: ranks load one for an all_reduce of two, run it, and from then on the group
// takes it for the sizes that it states. In two shells:
//
//     load_capsule 0 2 tcp://127.0.0.1:29500 exchange.capsule
//     load_capsule 1 2 tcp://127.0.0.1:29500 exchange.capsule
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <pccl/communicator.h>
#include <pccl/operator.h>
#include <pccl/store.h>

namespace {

using pccl::Block;
using pccl::Communicator;
using pccl::Deadline;
using pccl::Operator;
using pccl::Status;

Status sum_by(const std::string& path, const std::shared_ptr<Communicator>& comm) {
    std::vector<float> values(1000, static_cast<float>(comm->rank() + 1));
    const Block block{reinterpret_cast<std::byte*>(values.data()), values.size()};
    PCCL_ASSIGN_OR_RETURN(
        const Operator sum,
        Operator::load(comm, path, {.inputs = {&block, 1}, .outputs = {&block, 1}}));
    PCCL_TRY(sum.run());
    PCCL_ASSIGN_OR_RETURN(const auto event, sum.execute());
    PCCL_TRY(event.wait());
    std::printf("rank %d of %d: two sums by %s make %g\n", comm->rank(), comm->size(),
                std::string(sum.collective().algorithm).c_str(), values.front());
    return comm->barrier();
}

Status meet_and_sum(int rank, int size, const std::string& rendezvous, const std::string& path) {
    PCCL_ASSIGN_OR_RETURN(
        const auto store,
        pccl::open_store(rendezvous, rank, size, Deadline::after(std::chrono::seconds(30))));
    PCCL_ASSIGN_OR_RETURN(const auto comm,
                          Communicator::create({.rank = rank, .size = size, .store = store}));
    return sum_by(path, comm);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: load_capsule RANK SIZE RENDEZVOUS CAPSULE\n");
        return 2;
    }
    const Status status = meet_and_sum(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], argv[4]);
    if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return status.is_ok() ? 0 : 1;
}
