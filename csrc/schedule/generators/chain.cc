// SPDX-License-Identifier: Apache-2.0

// Chain: the ring cut open at the root, a pipeline through all ranks with one message per chunk.
//
// broadcast: root, root+1, ..., root-1. reduce: the ring is cut on the other side of the root, so
// that the partial sum ends there. It takes n-1 rounds for the first chunk and one more for each
// further one. Every rank sends the vector at most once, the least possible; in reduce all ranks
// except the first reduce it once.
#include "csrc/schedule/generators/family.h"

namespace pccl::schedule {
namespace {

Program chain_broadcast(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const int position = me.from_root();
    for (int chunk = 0; chunk < me.chunks(); ++chunk) {
        const Slice output = one_chunk(Buffer::kOutput, chunk);
        if (position == 0) {
            lane.send(one_chunk(Buffer::kInput, chunk), me.at(1));
        } else if (position < me.n() - 1) {
            lane.recv_copy_send(me.at(-1), output, me.at(1));
        } else {
            lane.recv(me.at(-1), output);
        }
    }
    if (position == 0) lane.copy(me.block(Buffer::kInput, 0), me.block(Buffer::kOutput, 0));
    return program;
}

Program chain_reduce(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const int position = me.from_root();
    for (int chunk = 0; chunk < me.chunks(); ++chunk) {
        const Slice input = one_chunk(Buffer::kInput, chunk);
        if (position == 1) {
            lane.send(input, me.at(1));
        } else if (position > 1) {
            lane.recv_reduce_send(me.at(-1), input, me.at(1));
        } else {
            lane.recv_reduce(me.at(-1), input, one_chunk(Buffer::kOutput, chunk));
        }
    }
    return program;
}

BlockCost cost_of_chain(const Sizes& of) { return {of.n - 1, of.chunks, 1.0, of.if_reduced(1.0)}; }

}  // namespace

std::vector<ScheduleSource> chain() {
    return {generated("ring", {CollectiveKind::kBroadcast, chain_broadcast, cost_of_chain}),
            generated("ring", {CollectiveKind::kReduce, chain_reduce, cost_of_chain})};
}

}  // namespace pccl::schedule
