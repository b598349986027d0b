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

struct Maker {
    CollectiveKind kind;
    Algorithm algorithm;
};

inline std::vector<Maker> all_makers() {
    std::vector<Maker> makers;
    for (const CollectiveKind kind : kAllKinds) {
        for (const Algorithm algorithm : algorithms_for(kind)) makers.push_back({kind, algorithm});
    }
    return makers;
}

/// "ring_all_reduce", a name that GoogleTest accepts.
inline std::string name_of(const Maker& maker) {
    return std::string(to_string(maker.algorithm)) + "_" + std::string(to_string(maker.kind));
}

inline std::vector<Placement> placements(CollectiveKind kind) {
    if (kind == CollectiveKind::kAllToAll) return {Placement::kOutOfPlace};
    return {Placement::kOutOfPlace, Placement::kInPlace};
}

/// The smallest shape with `multiple` times the chunks that the algorithm needs, and as few slots
/// as it claims to need.
inline Shape shape_of(const Maker& maker, int ranks, Rank root, int multiple) {
    return {.kind = maker.kind,
            .ranks = ranks,
            .root = root,
            .chunks = multiple * chunk_granularity(maker.algorithm, maker.kind, ranks),
            .slots = slots_needed(maker.algorithm, maker.kind)};
}

inline int roots(const Maker& maker, int ranks) { return is_rooted(maker.kind) ? ranks : 1; }

}  // namespace pccl::schedule::testing
