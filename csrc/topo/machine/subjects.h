// SPDX-License-Identifier: Apache-2.0

// Counted subjects of one kind of warning: "0000:00:06.0 and 7 more".
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

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
