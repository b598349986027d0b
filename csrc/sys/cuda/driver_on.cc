#include "csrc/sys/cuda/driver.h"

namespace pccl::sys::cuda {

Result<Driver*> driver_on(int device, Driver* given) {
    if (given == nullptr) {
        PCCL_ASSIGN_OR_RETURN(given, process_driver());
    }
    PCCL_TRY(given->use(device));
    return given;
}

}  // namespace pccl::sys::cuda
