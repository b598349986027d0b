// SPDX-License-Identifier: Apache-2.0

// Topology of a machine: its attributes, warnings, graph and best paths.
//
//     PCCL_ASSIGN_OR_RETURN(const Topology topology, Topology::load("topo.xml", {}));
//     for (const Warning& warning : topology.warnings()) ...
//     topology.paths().path(gpu, net);
//     PCCL_ASSIGN_OR_RETURN(const ChannelPlan plan, search(topology, {.pattern = Pattern::kRing}));
//
// Immutable and cheap to copy.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <pccl/status.h>
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
    /// Completes and repairs `machine`; `warnings` come from its creation. kInvalidArgument: no
    /// graph can be built, an assumption is out of range, or, if strict, there is a warning.
    [[nodiscard]] static Result<Topology> make(Machine machine, const LoadOptions& options,
                                               Warnings warnings = {});
    /// Parses topology XML of NCCL or of hwloc; `name` names the text in error messages.
    [[nodiscard]] static Result<Topology> parse(std::string_view xml, std::string_view name,
                                                const LoadOptions& options);
    /// Parses a file; kUnavailable if it cannot be read.
    [[nodiscard]] static Result<Topology> load(const std::string& path, const LoadOptions& options);

    /// Returns a copy in which these warnings replace its own.
    [[nodiscard]] Topology with(Warnings warnings) const;
    /// Returns a copy in which measured rates of copies between GPUs replace the usual rates of
    /// NVLinks. Its XML and digest remain those of the declared machine.
    [[nodiscard]] Topology with(const Calibration& calibration) const;

    [[nodiscard]] const Machine& machine() const { return parts_->machine; }
    [[nodiscard]] const Warnings& warnings() const { return parts_->warnings; }
    [[nodiscard]] const Assumptions& assumptions() const { return parts_->assume; }
    [[nodiscard]] const Graph& graph() const { return parts_->graph; }
    [[nodiscard]] const PathTable& paths() const { return parts_->paths; }
    /// Returns the machine as NCCL's XML, with assumed and repaired values.
    [[nodiscard]] std::string to_xml() const;
    /// Returns 16 hexadecimal digits, equal for equal machines; the addresses of hosts and GPUs may
    /// differ.
    [[nodiscard]] const std::string& digest() const;

   private:
    struct TopologyParts {
        TopologyParts(Machine machine, Warnings warnings, const Assumptions& assume, Graph graph);

        Machine machine;
        Warnings warnings;
        Assumptions assume;
        Graph graph;
        PathTable paths;     // borrows the graph
        std::string digest;  // of the graph with unmeasured rates
    };
    explicit Topology(std::shared_ptr<const TopologyParts> parts) : parts_(std::move(parts)) {}

    std::shared_ptr<const TopologyParts> parts_;
};

}  // namespace pccl::topo
