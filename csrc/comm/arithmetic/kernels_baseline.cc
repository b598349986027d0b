#include "csrc/comm/arithmetic/table.h"

namespace pccl::comm::arithmetic {

constinit const Kernels kBaselineKernels = make_kernels();

}  // namespace pccl::comm::arithmetic
