#include "csrc/comm/links/link_program.h"

#include <algorithm>
#include <iterator>

namespace pccl::comm {
namespace {

int port_index(std::vector<schedule::Port>& ports, const schedule::Port& port) {
    if (!port.is_used()) return kNoPort;
    const auto index = std::find(ports.begin(), ports.end(), port) - ports.begin();
    if (index == std::ssize(ports)) ports.push_back(port);
    return static_cast<int>(index);
}

LinkStep bind_step(LinkProgram& bound, const schedule::Step& step) {
    const bool moves = step.from.is_used() || step.to.is_used();
    if (moves) bound.longest_message = std::max(bound.longest_message, count_of(step));
    return {.action = step.action,
            .src = step.src,
            .dst = step.dst,
            .from = port_index(bound.receive_ports, step.from),
            .to = port_index(bound.send_ports, step.to),
            .after = step.after};
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
        for (const schedule::Step& step : lane) steps.push_back(bind_step(*bound, step));
    }
    return std::shared_ptr<const LinkProgram>(std::move(bound));
}

}  // namespace pccl::comm
