// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/programs/loaded_schedules.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <span>

#include "csrc/base/log/log.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/device/programs/device_program.h"

namespace pccl::device {
namespace {

Status check_runs(const schedule::ScheduleSource& source, const kernels::Gpus& gpus) {
    const Rank root = source.only ? source.only->root : Rank{0};
    PCCL_ASSIGN_OR_RETURN(
        const schedule::Schedule made,
        schedule::generate(source, schedule::least_shape(source, gpus.count, root)));
    return device_grid(made, gpus.thresholds()).status();
}

std::uint64_t bytes_of(std::span<const Block> blocks, DataType type) {
    std::uint64_t elements = 0;
    for (const Block& block : blocks) elements += block.count;
    return elements * size_of(type);
}

}  // namespace

LoadedSchedules::LoadedSchedules(const schedule::Catalogue& catalogue, const kernels::Gpus& gpus)
    : ranks_(gpus.count) {
    for (const schedule::SourcePtr& source : catalogue.loaded()) {
        if (const Status runs = check_runs(*source, gpus); !runs.is_ok()) {
            log(LogLevel::kWarning, "no GPU runs capsule ", source->name,
                ", but CPUs do: ", runs.message());
            continue;
        }
        sources_.push_back(source);
        for (const std::uint64_t part : {source->digest, source->sizes->least, source->sizes->most})
            digest_ = mixed(digest_, part);
    }
}

schedule::SourcePtr LoadedSchedules::find(const Collective& collective) const {
    if (sources_.empty()) return nullptr;
    return find(collective.kind, collective.root,
                std::max(bytes_of(collective.inputs, collective.type),
                         bytes_of(collective.outputs, collective.type)));
}

schedule::SourcePtr LoadedSchedules::find(CollectiveKind kind, Rank root,
                                          std::uint64_t bytes) const {
    for (const schedule::SourcePtr& source : sources_ | std::views::reverse) {
        if (source->kind != kind || !source->sizes->has(bytes)) continue;
        const auto shape = schedule::least_shape(*source, ranks_, root);
        if (schedule::check_shape(*source, shape).is_ok()) return source;
    }
    return nullptr;
}

}  // namespace pccl::device
