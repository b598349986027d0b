// A machine, understood: what is known of it, what looks wrong, the graph and the best paths.
//
//     PCCL_ASSIGN_OR_RETURN(const Topology topology, Topology::load("topo.xml", {}));
//     for (const Warning& warning : topology.warnings()) ...
//     topology.paths().path(gpu, net);
//     PCCL_ASSIGN_OR_RETURN(const Plan plan, search(topology, {.pattern = Pattern::kRing}));
//
// Immutable and cheap to copy.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/topo/graph/graph.h"
#include "csrc/topo/graph/paths.h"
#include "csrc/topo/machine/calibration.h"
#include "csrc/topo/machine/completion.h"
#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

struct LoadOptions {
    Assumptions assume{};
    bool strict = false;  // warnings are errors
};

class PCCL_API Topology {
   public:
    /// Completes and repairs `machine`; `warnings` are those that making it gave. kInvalidArgument
    /// for what makes no graph, for assumptions out of range, and, when strict, for warnings.
    [[nodiscard]] static Result<Topology> make(Machine machine, const LoadOptions& options,
                                               Warnings warnings = {});
    /// Topology XML of NCCL, or of hwloc; `name` stands for the text in messages.
    [[nodiscard]] static Result<Topology> parse(std::string_view xml, std::string_view name,
                                                const LoadOptions& options);
    /// The same from a file; kUnavailable when it cannot be read.
    [[nodiscard]] static Result<Topology> load(const std::string& path, const LoadOptions& options);

    /// The same, with these warnings in place of its own.
    [[nodiscard]] Topology with(Warnings warnings) const;
    /// The same, with what copies between GPUs were measured to reach in place of the usual rates
    /// of NVLinks. Its XML and digest stay those of the machine as it was declared.
    [[nodiscard]] Topology with(const Calibration& calibration) const;

    [[nodiscard]] const Machine& machine() const { return parts_->machine; }
    [[nodiscard]] const Warnings& warnings() const { return parts_->warnings; }
    [[nodiscard]] const Assumptions& assumptions() const { return parts_->assume; }
    [[nodiscard]] const Graph& graph() const { return parts_->graph; }
    [[nodiscard]] const PathTable& paths() const { return parts_->paths; }
    /// What was loaded, with what was assumed and repaired; NCCL reads it.
    [[nodiscard]] std::string to_xml() const;
    /// The same for equal machines, of which hosts and GPUs may have other addresses: 16
    /// hexadecimal digits.
    [[nodiscard]] const std::string& digest() const;

   private:
    struct Parts {
        Parts(Machine machine, Warnings warnings, const Assumptions& assume, Graph graph);

        Machine machine;
        Warnings warnings;
        Assumptions assume;
        Graph graph;
        PathTable paths;     // borrows the graph
        std::string digest;  // of the graph before rates were measured
    };
    explicit Topology(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

    std::shared_ptr<const Parts> parts_;
};

}  // namespace pccl::topo
