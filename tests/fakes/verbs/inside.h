// SPDX-License-Identifier: Apache-2.0

// How long threads are in the fake: what a measurement of its callers leaves out.
#pragma once

#include <cstdint>

namespace pccl::fake_verbs {

/// Measures from its construction to its end, where fake_verbs_measure_time is on.
class Inside {
   public:
    Inside();
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    int how_;
    uint64_t begun_ = 0;
};

}  // namespace pccl::fake_verbs
