// SPDX-License-Identifier: Apache-2.0

// Progress of a transaction, for observers.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/cluster.h>
#include <pccl/status.h>

namespace pccl::cluster {

/// Publisher of a transaction's progress to its observer, if there is one.
class ProgressReporter {
   public:
    ProgressReporter(Watch watch, const std::vector<std::string>& names);

    void begin_part(std::string_view part);
    void begin(std::string_view doing, const std::vector<std::size_t>& who);
    void end(std::size_t who, const Status& status);

   private:
    void report() const;

    const Watch watch_;
    Progress progress_;
};

}  // namespace pccl::cluster
