// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/extent.h"

#include <algorithm>

#include "csrc/capsule/limits.h"
#include "csrc/schedule/source.h"

namespace pccl::capsule {
namespace {

using schedule::Buffer;
using schedule::Lane;
using schedule::PeerPort;
using schedule::Program;
using schedule::Schedule;
using schedule::Shape;
using schedule::Step;

void add_step(const Step& step, VerificationSize& extent) {
    extent.parts +=
        1 + static_cast<long long>(step.src.size() + step.dst.size() + step.after.size());
    extent.moved += count_of(step);
    for (const PeerPort& port : {step.from, step.to})
        if (port.is_used()) extent.channels = std::max(extent.channels, port.channel);
}

void add_program(const Program& program, VerificationSize& extent) {
    const auto lanes = static_cast<long long>(program.lanes.size());
    extent.parts += lanes;
    if (lanes > 1) extent.lanes_together += lanes;
    extent.places += program.scratch_chunks;
    for (const Lane& lane : program.lanes) {
        extent.steps += static_cast<long long>(lane.size());
        for (const Step& step : lane) add_step(step, extent);
    }
}

long long places_of(const Shape& shape) {
    const long long blocks = schedule::blocks(shape.kind, Buffer::kInput, shape.ranks) +
                             schedule::blocks(shape.kind, Buffer::kOutput, shape.ranks);
    return blocks * shape.chunks * shape.ranks;
}

}  // namespace

VerificationSize& VerificationSize::operator+=(const VerificationSize& other) {
    parts += other.parts;
    steps += other.steps;
    moved += other.moved;
    lanes_together += other.lanes_together;
    ordered += other.ordered;
    places += other.places;
    channels = std::max(channels, other.channels);
    return *this;
}

VerificationSize extent_of(const Schedule& schedule) {
    VerificationSize extent{.places = places_of(schedule.shape)};
    for (const Program& program : schedule.programs) add_program(program, extent);
    extent.ordered = extent.steps * extent.lanes_together;
    return extent;
}

Status check_extent(const VerificationSize& extent) {
    if (extent.channels >= kMostChannels)
        return refuse("channel is ", extent.channels, "; it must be below ", kMostChannels);
    if (extent.parts <= kMostParts && extent.places <= kMostPlaces && extent.moved <= kMostMoved &&
        extent.ordered <= kMostOrdered)
        return Status::ok();
    return refuse("the programs have ", extent.steps, " steps that move ", extent.moved,
                  " chunks among ", extent.places, " in ", extent.lanes_together,
                  " lanes side by side: more than is verified");
}

Status check_extent(const Schedule& schedule) {
    PCCL_TRY(check_extent(schedule.shape));
    return check_extent(extent_of(schedule));
}

Status check_extent(const Shape& shape) {
    if (shape.ranks < 1 || shape.ranks > schedule::kMostRanks)
        return refuse("ranks is ", shape.ranks, "; it must be 1 to ", schedule::kMostRanks);
    if (shape.chunks < 1 || shape.chunks > kMostPlaces)
        return refuse("chunks is ", shape.chunks, "; it must be 1 to ", kMostPlaces);
    if (shape.slots < 1 || shape.slots > kMostSlots)
        return refuse("slots is ", shape.slots, "; it must be 1 to ", kMostSlots);
    if (places_of(shape) <= kMostPlaces) return Status::ok();
    return refuse(shape.ranks, " ranks with ", shape.chunks, " chunks a block have more than ",
                  kMostPlaces, " chunks, the most that is verified");
}

}  // namespace pccl::capsule
