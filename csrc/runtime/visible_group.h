// SPDX-License-Identifier: Apache-2.0

// View of a rank in its group, for onlookers (status_report.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/bootstrap/endpoint.h"
#include "csrc/transport/control/identity.h"

namespace pccl::runtime {

/// Thread-safe. No function waits longer than 20 ms.
class VisibleGroup {
   public:
    virtual ~VisibleGroup() = default;

    struct Standing {
        std::vector<Rank> awaited{};
        Status broken{};       // why the group has failed here; ok: it has not
        bool is_whole = true;  // false: a thread holds the group
    };

    [[nodiscard]] virtual const transport::GroupId& id() const = 0;
    /// Returns the group's id in the flight recorder.
    [[nodiscard]] virtual std::uint32_t flight_group() const = 0;
    [[nodiscard]] virtual Standing standing() const = 0;
    /// Returns at most `most` of its ranks from `first` on; none while the group is being made or
    /// held.
    [[nodiscard]] virtual std::vector<bootstrap::Endpoint> members(Rank first,
                                                                   std::size_t most) const = 0;
};

}  // namespace pccl::runtime
