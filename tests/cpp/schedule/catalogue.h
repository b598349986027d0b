// SPDX-License-Identifier: Apache-2.0

// Every algorithm of every collective, for tests that go through all of them.
#pragma once

#include <string>
#include <vector>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::schedule::testing {

inline constexpr CollectiveKind kAllKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kBroadcast, CollectiveKind::kReduce,    CollectiveKind::kGather,
    CollectiveKind::kScatter,   CollectiveKind::kAllToAll,
};

inline std::vector<SourcePtr> all_sources() {
    std::vector<SourcePtr> sources;
    for (const CollectiveKind kind : kAllKinds) {
        const auto of_kind = built_in()->of(kind);
        sources.insert(sources.end(), of_kind.begin(), of_kind.end());
    }
    return sources;
}

/// "ring_all_reduce", a name that GoogleTest accepts.
inline std::string name_of(const SourcePtr& source) {
    return source->name + "_" + std::string(to_string(source->kind));
}

inline std::vector<Placement> placements(CollectiveKind kind) {
    if (kind == CollectiveKind::kAllToAll) return {Placement::kOutOfPlace};
    return {Placement::kOutOfPlace, Placement::kInPlace};
}

/// In chunks; 0 where nothing is sent.
inline int longest_message(const Schedule& schedule) {
    int longest = 0;
    for (const Program& program : schedule.programs)
        for (const Lane& lane : program.lanes)
            for (const Step& step : lane)
                longest = std::max(longest, step.to.is_used() ? count_of(step) : 0);
    return longest;
}

/// The least shape, but for `multiple` times the chunks.
inline Shape shape_of(const SourcePtr& source, int ranks, Rank root, int multiple) {
    Shape shape = least_shape(*source, ranks, root);
    shape.chunks *= multiple;
    return shape;
}

inline int roots(const SourcePtr& source, int ranks) { return is_rooted(source->kind) ? ranks : 1; }

}  // namespace pccl::schedule::testing
