// A rank in its group, as onlookers see it (status_report.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/bootstrap/endpoint.h"
#include "csrc/transport/control/identity.h"

namespace pccl::runtime {

/// From any thread. Nothing here waits for longer than 20 ms.
class VisibleGroup {
   public:
    virtual ~VisibleGroup() = default;

    struct Standing {
        std::vector<Rank> awaited{};
        Status broken{};       // why the group is over here; ok while it is not
        bool is_whole = true;  // false where a thread holds the group, and some may be missing
    };

    [[nodiscard]] virtual const transport::GroupId& id() const = 0;
    /// Under which the flight recorder has its operations.
    [[nodiscard]] virtual std::uint32_t flight_group() const = 0;
    [[nodiscard]] virtual Standing standing() const = 0;
    /// Its ranks from `first` on, `most` at most; none while the group is being made, or held.
    [[nodiscard]] virtual std::vector<bootstrap::Endpoint> members(Rank first,
                                                                   std::size_t most) const = 0;
};

}  // namespace pccl::runtime
