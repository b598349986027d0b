// SPDX-License-Identifier: Apache-2.0

// All-pairs exchange: every rank sends to all others at once.
//
// One shot takes one round. all_reduce sends n-1 whole vectors per rank and reduces n-1 times its
// size; all_gather, reduce_scatter and all_to_all send n-1 blocks per rank, and reduce_scatter
// reduces n-1 blocks. In broadcast and scatter the root sends n-1 times, in reduce and gather every
// other rank once.
//
// Two shots, for all_reduce, are a reduce_scatter and then an all_gather. They take two rounds; a
// rank sends 2(n-1)/n of the vector in 2(n-1) messages and reduces (n-1)/n of it, the fewest bytes
// that any all_reduce can send (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", J. Parallel and Distributed Computing 69, 2009).
//
// If all ranks reduce the same block, they use rank order x0 (+) x1 (+) ..., so that all get the
// same bits. If one rank reduces it, it takes operands in the order in which they are sent to it:
// otherwise all would wait for rank 0, whose messages leave one after the other. All operands
// except the last are summed in scratch, on every rank alike: an executor that keeps scratch in a
// wider type then rounds once, identically on every rank.
#include "csrc/schedule/generators/family.h"

namespace pccl::schedule {
namespace {

/// Starts with the next rank, so that the ranks do not all send to one receiver at once.
template <typename SliceFor>
void send_to_all(LaneBuilder& lane, const Member& me, SliceFor slice_for) {
    for (int i = 1; i < me.n(); ++i) lane.send(slice_for(me.at(i)), me.at(i));
}

/// Receives in the order in which the peers send to this rank.
template <typename SliceFor>
void recv_from_all(LaneBuilder& lane, const Member& me, SliceFor slice_for) {
    for (int i = 1; i < me.n(); ++i) lane.recv(me.at(-i), slice_for(me.at(-i)));
}

/// Appends result = x0 (+) x1 (+) ... (+) x(n-1), where x(rank) is `own` and the others are
/// received.
void reduce_in_rank_order(Program& program, LaneBuilder& lane, const Member& me, Slice own,
                          Slice result) {
    const Rank last = me.n() - 1;
    if (me.n() == 2) {
        lane.recv_reduce(1 - me.rank, own, result);
        return;
    }
    const Slice sum = add_scratch_like(program, result);
    Rank next = 2;
    if (me.rank < 2) {
        lane.recv_reduce(1 - me.rank, own, sum);
    } else {
        if (me.rank == last) lane.copy(own, result);
        lane.recv(0, sum);
        next = 1;
    }
    for (; next < last; ++next) {
        if (next == me.rank) {
            lane.reduce(own, sum);
        } else {
            lane.recv_accumulate(next, sum);
        }
    }
    if (me.rank == last) {
        lane.reduce(sum, result);
    } else {
        lane.recv_reduce(last, sum, result);
    }
}

/// Appends result = x(rank) (+) x(rank-1) (+) ... (+) x(rank+1), where x(rank) is `own`.
void reduce_in_order_of_sending(Program& program, LaneBuilder& lane, const Member& me, Slice own,
                                Slice result) {
    if (me.n() == 2) {
        lane.recv_reduce(me.at(-1), own, result);
        return;
    }
    const Slice sum = add_scratch_like(program, result);
    lane.recv_reduce(me.at(-1), own, sum);
    for (int i = 2; i < me.n() - 1; ++i) lane.recv_accumulate(me.at(-i), sum);
    lane.recv_reduce(me.at(1), sum, result);
}

Program one_shot_all_reduce(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    send_to_all(lane, me, [&](Rank) { return input; });
    reduce_in_rank_order(program, lane, me, input, me.block(Buffer::kOutput, 0));
    return program;
}

Program two_shot_all_reduce(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const auto input_of = [&](Rank owner) { return part(me, Buffer::kInput, owner, me.n()); };
    const auto output_of = [&](Rank owner) { return part(me, Buffer::kOutput, owner, me.n()); };
    send_to_all(lane, me, input_of);
    reduce_in_order_of_sending(program, lane, me, input_of(me.rank), output_of(me.rank));
    send_to_all(lane, me, [&](Rank) { return output_of(me.rank); });
    recv_from_all(lane, me, output_of);
    return program;
}

Program one_shot_all_gather(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    send_to_all(lane, me, [&](Rank) { return input; });
    lane.copy(input, me.block(Buffer::kOutput, me.rank));
    recv_from_all(lane, me, [&](Rank peer) { return me.block(Buffer::kOutput, peer); });
    return program;
}

Program one_shot_reduce_scatter(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    send_to_all(lane, me, [&](Rank peer) { return me.block(Buffer::kInput, peer); });
    reduce_in_order_of_sending(program, lane, me, me.block(Buffer::kInput, me.rank),
                               me.block(Buffer::kOutput, 0));
    return program;
}

Program one_shot_all_to_all(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    send_to_all(lane, me, [&](Rank peer) { return me.block(Buffer::kInput, peer); });
    lane.copy(me.block(Buffer::kInput, me.rank), me.block(Buffer::kOutput, me.rank));
    recv_from_all(lane, me, [&](Rank peer) { return me.block(Buffer::kOutput, peer); });
    return program;
}

Program one_shot_broadcast(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    const Slice output = me.block(Buffer::kOutput, 0);
    if (me.is_root()) {
        send_to_all(lane, me, [&](Rank) { return input; });
        lane.copy(input, output);
    } else {
        lane.recv(me.shape.root, output);
    }
    return program;
}

Program one_shot_reduce(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    if (me.is_root()) {
        reduce_in_rank_order(program, lane, me, input, me.block(Buffer::kOutput, 0));
    } else {
        lane.send(input, me.shape.root);
    }
    return program;
}

Program one_shot_gather(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    if (me.is_root()) {
        lane.copy(input, me.block(Buffer::kOutput, me.rank));
        recv_from_all(lane, me, [&](Rank peer) { return me.block(Buffer::kOutput, peer); });
    } else {
        lane.send(input, me.shape.root);
    }
    return program;
}

Program one_shot_scatter(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice output = me.block(Buffer::kOutput, 0);
    if (me.is_root()) {
        send_to_all(lane, me, [&](Rank peer) { return me.block(Buffer::kInput, peer); });
        lane.copy(me.block(Buffer::kInput, me.rank), output);
    } else {
        lane.recv(me.shape.root, output);
    }
    return program;
}

BlockCost cost_of_one_shot(const Sizes& of) {
    const auto others = static_cast<double>(of.others());
    return {1, of.others(), others, of.if_reduced(others)};
}

BlockCost cost_of_two_shot(const Sizes& of) {
    const auto others = static_cast<double>(of.others());
    return {2, 2 * of.others(), 2 * others / of.n, others / of.n};
}

ScheduleSource one_shot_source(CollectiveKind kind, Program (*make)(const Member&)) {
    ScheduleSource made = generated("one_shot", {kind, make, cost_of_one_shot});
    made.longest_message = one_block;
    made.takes_uneven = true;
    made.swaps_operands = kind == CollectiveKind::kAllReduce;
    return made;
}

}  // namespace

std::vector<ScheduleSource> one_shot() {
    return {one_shot_source(CollectiveKind::kAllReduce, one_shot_all_reduce),
            one_shot_source(CollectiveKind::kAllGather, one_shot_all_gather),
            one_shot_source(CollectiveKind::kReduceScatter, one_shot_reduce_scatter),
            one_shot_source(CollectiveKind::kBroadcast, one_shot_broadcast),
            one_shot_source(CollectiveKind::kReduce, one_shot_reduce),
            one_shot_source(CollectiveKind::kGather, one_shot_gather),
            one_shot_source(CollectiveKind::kScatter, one_shot_scatter),
            one_shot_source(CollectiveKind::kAllToAll, one_shot_all_to_all)};
}

std::vector<ScheduleSource> two_shot() {
    ScheduleSource made =
        generated("two_shot", {CollectiveKind::kAllReduce, two_shot_all_reduce, cost_of_two_shot});
    made.granularity = chunk_for_each_rank;
    made.longest_message = [](const Shape& shape) { return shape.chunks / shape.ranks; };
    return {made};
}

}  // namespace pccl::schedule
