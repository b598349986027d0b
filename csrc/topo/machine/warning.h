// SPDX-License-Identifier: Apache-2.0

// Warning about a machine, with its repair, and the counted subjects of one kind of warning.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"

namespace pccl::topo {

struct Warning {
    std::string name;     // "slow_switch_link": stable, documented in docs/reference/topology.md
    std::string subject;  // "gpu3", "net1 (mlx5_2)", a bus id, a line of a file
    std::string message;  // the fault and its cost
    std::string repair;   // the value assumed instead; empty: no repair

    friend bool operator==(const Warning&, const Warning&) = default;
};

using Warnings = std::vector<Warning>;

/// Subjects of one kind of warning, counted: "0000:00:06.0 and 7 more".
class Subjects {
   public:
    void add(std::string_view subject) {
        if (count_++ == 0) first_ = subject;
    }
    /// Adds one warning for all subjects; none if there are none.
    void warn(Warnings& warnings, const char* name, std::string message, std::string repair) const {
        if (count_ == 0) return;
        warnings.push_back({name, text(), std::move(message), std::move(repair)});
    }

   private:
    [[nodiscard]] std::string text() const {
        return count_ == 1 ? first_ : concat(first_, " and ", count_ - 1, " more");
    }

    std::string first_;
    int count_ = 0;
};

}  // namespace pccl::topo
