#include "csrc/comm/arithmetic/table.h"

namespace pccl::comm::arithmetic {

constinit const Kernels kAvx512Kernels = make_kernels();

}  // namespace pccl::comm::arithmetic
