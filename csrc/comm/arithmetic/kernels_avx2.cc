#include "csrc/comm/arithmetic/table.h"

namespace pccl::comm::arithmetic {

constinit const Kernels kAvx2Kernels = make_kernels();

}  // namespace pccl::comm::arithmetic
