// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/links/link_program.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pccl::comm {
namespace {

int port_index(std::vector<schedule::PeerPort>& ports, const schedule::PeerPort& port,
               bool& is_alone) {
    if (!port.is_used()) return kNoPort;
    const auto index = std::find(ports.begin(), ports.end(), port) - ports.begin();
    if (index == std::ssize(ports))
        ports.push_back(port);
    else
        is_alone = false;
    return static_cast<int>(index);
}

LinkStep bind_step(LinkProgram& bound, const schedule::Step& step) {
    const bool moves = step.from.is_used() || step.to.is_used();
    if (moves) bound.longest_message = std::max(bound.longest_message, count_of(step));
    return {.action = step.action,
            .src = step.src,
            .dst = step.dst,
            .from = port_index(bound.receive_ports, step.from, bound.has_a_link_for_each_step),
            .to = port_index(bound.send_ports, step.to, bound.has_a_link_for_each_step),
            .after = step.after};
}

bool uses(schedule::Buffer buffer, const schedule::Slices& slices) {
    return std::ranges::any_of(
        slices, [buffer](const schedule::Slice& slice) { return slice.buffer == buffer; });
}

bool overwrites_output(const schedule::Step& step) {
    const bool copies_input = step.action == schedule::Action::kCopy &&
                              !uses(schedule::Buffer::kScratch, step.src) &&
                              !uses(schedule::Buffer::kOutput, step.src);
    return !copies_input && uses(schedule::Buffer::kOutput, step.dst);
}

/// Stores the owners of blocks, whose lengths may differ, for steps that use scratch: other buffers
/// imply the owner.
void name_blocks(LinkProgram& bound, const schedule::Program& program) {
    auto blocks = moved_blocks(program, bound.shape, bound.rank);
    for (std::size_t lane = 0; lane < blocks.size(); ++lane)
        for (std::size_t index = 0; index < blocks[lane].size(); ++index) {
            LinkStep& step = bound.lanes[lane][index];
            if (uses(schedule::Buffer::kScratch, step.src) ||
                uses(schedule::Buffer::kScratch, step.dst))
                step.blocks = std::move(blocks[lane][index]);
        }
}

}  // namespace

Result<std::shared_ptr<const LinkProgram>> make_link_program(const schedule::ScheduleSource& source,
                                                             const schedule::Shape& shape,
                                                             Rank rank,
                                                             const schedule::RankOrder& order) {
    PCCL_ASSIGN_OR_RETURN(const schedule::Program program,
                          schedule::generate_program(source, shape, rank, order));
    auto bound = std::make_shared<LinkProgram>();
    bound->swaps_operands = source.swaps_operands;
    bound->shape = shape;
    bound->rank = rank;
    bound->scratch_chunks = program.scratch_chunks;
    for (const schedule::Lane& lane : program.lanes) {
        auto& steps = bound->lanes.emplace_back();
        for (const schedule::Step& step : lane) {
            steps.push_back(bind_step(*bound, step));
            bound->overwrites_output |= overwrites_output(step);
        }
    }
    if (source.takes_uneven && program.scratch_chunks > 0) name_blocks(*bound, program);
    return std::shared_ptr<const LinkProgram>(std::move(bound));
}

}  // namespace pccl::comm
