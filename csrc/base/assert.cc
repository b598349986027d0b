// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace pccl {

void assertion_failed(const char* what, const char* file, int line) {
    std::fprintf(stderr, "pccl: internal error: %s is false at %s:%d\n", what, file, line);
    std::abort();
}

}  // namespace pccl
