// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/arithmetic/table.h"

namespace pccl::arithmetic {

constinit const Kernels kAvx2Kernels = make_kernels();

}  // namespace pccl::arithmetic
