// SPDX-License-Identifier: Apache-2.0

// A process that has no descriptors left.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "csrc/base/unique_fd.h"

namespace pccl::fakes {

/// Takes all descriptors that this process may have; gives them back at the end.
class NoDescriptors {
   public:
    NoDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &usual_);
        const int next = UniqueFd(::dup(0)).get();
        const rlimit few{.rlim_cur = static_cast<rlim_t>(next) + 16, .rlim_max = usual_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &few);
        for (UniqueFd fd(::dup(0)); fd.is_open(); fd.reset(::dup(0)))
            held_.push_back(std::move(fd));
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &usual_); }
    NoDescriptors(const NoDescriptors&) = delete;
    NoDescriptors& operator=(const NoDescriptors&) = delete;

   private:
    rlimit usual_{};
    std::vector<UniqueFd> held_;
};

}  // namespace pccl::fakes
