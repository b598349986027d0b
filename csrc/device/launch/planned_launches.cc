// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/planned_launches.h"

#include <bit>
#include <cstdint>

#include "csrc/device/launch/lowering.h"

namespace pccl::device {
namespace {

using schedule::Buffer;

/// Returns an address that is never accessed.
std::byte* anywhere() { return std::bit_cast<std::byte*>(std::uintptr_t{1} << 40); }

/// A collective over such addresses.
struct Imagined {
    Imagined(CollectiveKind what, std::size_t bytes, int ranks)
        : kind(what),
          inputs(static_cast<std::size_t>(schedule::blocks(what, Buffer::kInput, ranks)),
                 {anywhere(), bytes}),
          outputs(static_cast<std::size_t>(schedule::blocks(what, Buffer::kOutput, ranks)),
                  {anywhere(), bytes}) {}

    [[nodiscard]] Collective collective() const {
        return {.kind = kind,
                .type = DataType::kUint8,
                .inputs = inputs,
                .outputs = outputs,
                .is_even = may_be_even(kind)};
    }

    CollectiveKind kind;
    std::vector<Block> inputs;
    std::vector<Block> outputs;
};

PlannedLaunch planned(const Collective& collective, const kernels::Gpus& gpus,
                      const DeviceLaunch& wanted) {
    const kernels::LaunchPlan plan = plan_of(collective, wanted, gpus);
    const bool is_by_copy_engines = is_pulled(collective, plan);
    return {.kernel = is_by_copy_engines ? "copy engines" : std::string(kernel_of(collective.kind)),
            .bytes = longest_bytes(collective),
            .plan = plan,
            .why = plan.why};
}

}  // namespace

std::vector<PlannedLaunch> planned_launches(CollectiveKind kind, std::size_t bytes,
                                            const kernels::Gpus& gpus,
                                            const Preferences& preferences) {
    const DeviceLaunch wanted{.preferences = preferences};
    const Imagined imagined(kind, bytes, gpus.count);
    const Collective whole = imagined.collective();
    const auto phases = two_phases(whole, wanted, gpus);
    if (!phases) return {planned(whole, gpus, wanted)};
    return {planned(phases->reduce_scatter(whole, 0), gpus, wanted),
            planned(phases->all_gather(whole, 0), gpus, wanted)};
}

}  // namespace pccl::device
