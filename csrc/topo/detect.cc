#include "csrc/topo/detect.h"

namespace pccl::topo {

Result<Topology> detect(const LoadOptions& options, const Config& config) {
    if (!config.topo_file.empty()) return Topology::load(config.topo_file, options);
    return Topology::make(Machine{}, options);
}

}  // namespace pccl::topo
