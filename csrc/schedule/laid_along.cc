// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/laid_along.h"

#include <utility>

#include "csrc/base/assert.h"
#include "csrc/base/digest.h"
#include "csrc/base/text.h"

namespace pccl::schedule {

Result<SourcePtr> laid_along(const SourcePtr& source, RankOrder order) {
    PCCL_ASSERT(source->follows_order);
    const auto ranks = static_cast<int>(order.size());
    PCCL_TRY(generate_program(*source, least_shape(*source, ranks), 0, order).status());
    Digest identity;
    identity.add(concat("laid along ", source->digest));
    for (const Rank rank : order) identity.add(concat(" ", rank));
    auto made = std::make_shared<ScheduleSource>(*source);
    made->digest = identity.value();
    made->follows_order = false;
    made->symmetry = Symmetry::kNone;
    made->program = [source, order = std::move(order)](const Shape& shape, Rank rank) {
        return generate_program(*source, shape, rank, order).value();
    };
    return SourcePtr(std::move(made));
}

}  // namespace pccl::schedule
