// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/detect/detect.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/sys/hwloc/hwloc.h"
#include "csrc/sys/nvml/nvml.h"
#include "csrc/sys/sysfs/file.h"
#include "csrc/sys/sysfs/sysfs.h"
#include "csrc/topo/detect/live.h"
#include "csrc/topo/machine/calibration.h"
#include "csrc/topo/xml/hwloc_xml.h"
#include "csrc/topo/xml/machine_xml.h"
#include "csrc/topo/xml/xml_text.h"

#ifdef PCCL_WITH_VERBS
#include "csrc/sys/verbs/gpu_direct.h"
#endif

namespace pccl::topo {
namespace {

/// Returns nullopt if there is no NVML or no driver.
std::optional<std::vector<sys::NvmlGpu>> gpus_of_nvml() {
    const auto nvml = sys::open_nvml();
    if (!nvml.is_ok()) return std::nullopt;
    auto gpus = (*nvml)->gpus();
    return gpus.is_ok() ? std::optional(*std::move(gpus)) : std::nullopt;
}

/// Returns nullopt if there is no hwloc.
std::optional<Machine> seen_by_hwloc() {
    const auto xml = sys::read_hwloc();
    if (!xml.is_ok()) return std::nullopt;
    auto machine = parse_hwloc_xml(*xml, "hwloc", Source::kHwloc);
    return machine.is_ok() ? std::optional(*std::move(machine)) : std::nullopt;
}

Result<Machine> machine_of(const std::string& path, Source source, Warnings& warnings) {
    PCCL_ASSIGN_OR_RETURN(const std::string text, sys::read_file(path, XmlLimits::kBytes));
    return parse_machine_xml(text, path, source, warnings);
}

DmabufProbe dmabuf_probe() {
#ifdef PCCL_WITH_VERBS
    return [](const std::string& device) {
        const auto found = sys::verbs::takes_dmabuf(device);
        return found.is_ok() && *found;
    };
#else
    return {};
#endif
}

/// Returns the machine of the user's file, or of the vendor's; nullopt without either.
Result<std::optional<Machine>> described(const Config& config, Warnings& warnings) {
    const bool is_users = !config.topo_file.empty();
    std::error_code error;
    if (!is_users && !std::filesystem::exists(kVendorFile, error)) return std::optional<Machine>();
    const std::string path = is_users ? config.topo_file : kVendorFile;
    const Source source = is_users ? Source::kUserFile : Source::kVendorFile;
    auto machine = machine_of(path, source, warnings);
    if (machine.is_ok()) return std::optional(*std::move(machine));
    return is_users ? machine.status().with_context("PCCL_TOPO_FILE") : machine.status();
}

}  // namespace

Result<Topology> detect(const LoadOptions& options, const Config& config) {
    PCCL_TRY(check_settings(config));
    const sys::Sysfs sysfs;
    Warnings warnings;
    const auto gpus = gpus_of_nvml();
    Machine machine = observe(sysfs, gpus ? &*gpus : nullptr, warnings, dmabuf_probe());
    if (const auto seen = seen_by_hwloc()) enrich(machine, *seen);
    PCCL_ASSIGN_OR_RETURN(std::optional<Machine> file, described(config, warnings));
    if (file) {
        enrich(*file, machine);
        machine = *std::move(file);
    }
    check_surroundings(sysfs, machine, warnings);
    PCCL_TRY(sysfs.shortage());
    LoadOptions known = options;
    if (gpus && !has_peer_access(*gpus)) known.assume.peer_to_peer = false;
    PCCL_ASSIGN_OR_RETURN(Topology topology,
                          Topology::make(std::move(machine), known, std::move(warnings)));
    if (!config.topo_dump_file.empty())
        PCCL_TRY(sys::write_file(config.topo_dump_file, topology.to_xml())
                     .with_context("PCCL_TOPO_DUMP_FILE"));
    return topology.with(load_calibration(topology.digest(), config));
}

}  // namespace pccl::topo
