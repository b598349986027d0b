#include "csrc/comm/links/plan.h"

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

PlanStep bind_step(Plan& plan, const schedule::Step& step) {
    const bool moves = step.from.is_used() || step.to.is_used();
    if (moves) plan.longest_message = std::max(plan.longest_message, count_of(step));
    return {.action = step.action,
            .src = step.src,
            .dst = step.dst,
            .from = port_index(plan.receive_ports, step.from),
            .to = port_index(plan.send_ports, step.to),
            .after = step.after};
}

}  // namespace

Result<std::shared_ptr<const Plan>> make_plan(const schedule::ScheduleSource& source,
                                              const schedule::Shape& shape, Rank rank,
                                              const schedule::RankOrder& order) {
    PCCL_ASSIGN_OR_RETURN(const schedule::Program program,
                          schedule::generate_program(source, shape, rank, order));
    auto plan = std::make_shared<Plan>();
    plan->swaps_operands = source.swaps_operands;
    plan->shape = shape;
    plan->scratch_chunks = program.scratch_chunks;
    for (const schedule::Lane& lane : program.lanes) {
        auto& steps = plan->lanes.emplace_back();
        for (const schedule::Step& step : lane) steps.push_back(bind_step(*plan, step));
    }
    return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace pccl::comm
