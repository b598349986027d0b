// SPDX-License-Identifier: Apache-2.0

// Ring: every rank sends to the next rank and receives from the previous one.
//
// reduce_scatter: n-1 rounds, n-1 blocks sent and reduced per rank. all_gather: n-1 rounds, n-1
// blocks sent. all_reduce is both: 2(n-1) rounds, 2(n-1)/n of the vector sent and (n-1)/n of it
// reduced per rank, which is the least possible (Patarasu and Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations", J. Parallel and Distributed Computing 69, 2009).
//
// A block of k chunks travels as k independent rings, one lane and one channel each, so that the
// messages of one overlap the reductions of another. A step forwards a message without storing it
// if nothing else reads it. Because it holds an incoming message while it waits for an outgoing
// slot, two slots are required.
//
// Chain: the ring cut open at the root, a pipeline through all ranks with one message per chunk.
//
// broadcast: root, root+1, ..., root-1. reduce: the ring is cut on the other side of the root, so
// that the partial sum ends there. It takes n-1 rounds for the first chunk and one more for each
// further one. Every rank sends the vector at most once, the least possible; in reduce all ranks
// except the first reduce it once.
#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/moved_blocks.h"

namespace pccl::schedule {
namespace {

/// One of the parallel rings, on one rank: chunk `index` of every block, with `stride` chunks per
/// block.
class Ring {
   public:
    Ring(Program& program, const Member& me, int index, int stride)
        : me_(me), lane_(program, index), index_(index), stride_(stride) {}

    /// Appends the reduction: block b starts at rank b+1 and ends before rank b, complete except
    /// for the last addition.
    void reduce_towards_owner() {
        lane_.send(input(me_.at(-1)), right());
        for (int round = 1; round <= me_.n() - 2; ++round) {
            lane_.recv_reduce_send(left(), input(me_.at(-1 - round)), right());
        }
    }

    /// Appends the gather: rank b's block b, which it has already sent, travels around to rank b-1.
    void pass_on_blocks() {
        for (int round = 1; round <= me_.n() - 2; ++round) {
            lane_.recv_copy_send(left(), output(me_.at(-round)), right());
        }
        lane_.recv(left(), output(me_.at(1)));
    }

    void finish_own_block() { lane_.recv_reduce(left(), input(me_.rank), output(0)); }
    void finish_own_block_and_send() {
        lane_.recv_reduce_copy_send(left(), input(me_.rank), output(me_.rank), right());
    }
    void send_own_block() {
        lane_.send(input(0), right());
        lane_.copy(input(0), output(me_.rank));
    }

   private:
    [[nodiscard]] Rank left() const { return me_.at(-1); }
    [[nodiscard]] Rank right() const { return me_.at(1); }
    [[nodiscard]] Slice input(int block) const {
        return one_chunk(Buffer::kInput, block * stride_ + index_);
    }
    [[nodiscard]] Slice output(int block) const {
        return one_chunk(Buffer::kOutput, block * stride_ + index_);
    }

    const Member& me_;
    LaneBuilder lane_;
    int index_;
    int stride_;
};

Program ring_all_reduce(const Member& me) {
    Program program;
    const int rings = me.chunks() / me.n();
    for (int i = 0; i < rings; ++i) {
        Ring ring(program, me, i, rings);
        ring.reduce_towards_owner();
        ring.finish_own_block_and_send();
        ring.pass_on_blocks();
    }
    return program;
}

Program ring_all_gather(const Member& me) {
    Program program;
    for (int i = 0; i < me.chunks(); ++i) {
        Ring ring(program, me, i, me.chunks());
        ring.send_own_block();
        ring.pass_on_blocks();
    }
    return program;
}

Program ring_reduce_scatter(const Member& me) {
    Program program;
    for (int i = 0; i < me.chunks(); ++i) {
        Ring ring(program, me, i, me.chunks());
        ring.reduce_towards_owner();
        ring.finish_own_block();
    }
    return program;
}

BlockCost cost_of_ring(const Sizes& of) {
    const auto others = static_cast<double>(of.others());
    const long long messages = of.others() * of.chunks;
    if (of.kind != CollectiveKind::kAllReduce)
        return {of.n - 1, messages, others, of.if_reduced(others)};
    return {2 * (of.n - 1), 2 * messages / of.n, 2 * others / of.n, others / of.n};
}

ScheduleSource ring_source(CollectiveKind kind, Program (*make)(const Member&)) {
    ScheduleSource made = generated("ring", {kind, make, cost_of_ring});
    made.slots = 2;
    made.takes_uneven = has_known_blocks(kind);
    made.follows_order = true;
    made.runs_side_by_side = true;
    made.symmetry = seen_from_each_rank(kind);
    if (kind == CollectiveKind::kAllReduce) made.granularity = chunk_for_each_rank;
    return made;
}

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

std::vector<ScheduleSource> ring() {
    return {ring_source(CollectiveKind::kAllReduce, ring_all_reduce),
            ring_source(CollectiveKind::kAllGather, ring_all_gather),
            ring_source(CollectiveKind::kReduceScatter, ring_reduce_scatter)};
}

std::vector<ScheduleSource> chain() {
    return {generated("ring", {CollectiveKind::kBroadcast, chain_broadcast, cost_of_chain}),
            generated("ring", {CollectiveKind::kReduce, chain_reduce, cost_of_chain})};
}

}  // namespace pccl::schedule
