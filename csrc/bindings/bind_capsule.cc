// SPDX-License-Identifier: Apache-2.0

// Bindings behind pccl.Capsule: programs of collectives in files.

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/named_results.h"
#include "csrc/bindings/names.h"
#include "csrc/bindings/raw_steps.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/capsule/file_content.h"
#include "csrc/capsule/msccl/export.h"
#include "csrc/capsule/msccl/import.h"
#include "csrc/capsule/mscclpp/import.h"
#include "csrc/capsule/sizes.h"
#include "csrc/comm/selection/imagined_group.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/extension/former_names.h"
#include "csrc/schedule/generators/generators.h"

namespace pccl::bindings {

namespace py = pybind11;
using capsule::CapsuleFile;
using capsule::VerifiedCapsule;
using py::arg;

namespace {

schedule::Schedule schedule_of(const std::string& name, const std::string& collective, int ranks,
                               Rank root, int chunks, int slots, const py::list& programs,
                               std::vector<std::string> phases) {
    return {.name = name,
            .shape = {.kind = kind_of(collective),
                      .ranks = ranks,
                      .root = root,
                      .chunks = chunks,
                      .slots = slots},
            .programs = programs_of(programs),
            .phases = std::move(phases)};
}

Result<CapsuleFile> file_of(const Result<VerifiedCapsule>& capsule) {
    PCCL_TRY(capsule.status());
    return CapsuleFile(*capsule);
}

/// Returns nullopt where `name` is empty.
Result<std::optional<schedule::MessageProtocol>> protocol_called(const std::string& name) {
    const auto protocol = schedule::message_protocol_named(name);
    if (protocol || name.empty()) return protocol;
    return Status::invalid_argument(concat("'", name, "' is no protocol of messages; there are ",
                                           schedule::names_of_message_protocols()));
}

CapsuleFile make_capsule(const schedule::Schedule& schedule, const std::string& author,
                         const std::string& licence, const std::string& note,
                         const std::string& sizes, const std::string& protocol) {
    constexpr int kCallerOfCapsuleOf = 2;
    if (const auto known = schedule::message_protocol_named(protocol))
        extension::warn_of_former_protocol(protocol, schedule::to_string(*known),
                                           kCallerOfCapsuleOf);
    return released([&]() -> Result<CapsuleFile> {
        capsule::CapsuleDescription description{
            .name = schedule.name, .author = author, .licence = licence, .note = note};
        PCCL_ASSIGN_OR_RETURN(description.sizes, capsule::parse_sizes(sizes));
        PCCL_ASSIGN_OR_RETURN(description.protocol, protocol_called(protocol));
        return file_of(VerifiedCapsule::make(description, schedule));
    });
}

CapsuleFile join(const std::vector<CapsuleFile>& files) {
    return released([&]() -> Result<CapsuleFile> {
        std::vector<VerifiedCapsule> capsules;
        for (const CapsuleFile& each : files)
            for (const int ranks : each.ranks()) {
                PCCL_ASSIGN_OR_RETURN(VerifiedCapsule capsule, each.for_ranks(ranks));
                capsules.push_back(std::move(capsule));
            }
        return CapsuleFile::of(std::move(capsules));
    });
}

Result<CapsuleFile> proven(const Result<CapsuleFile>& file) {
    PCCL_TRY(file.status());
    return file->proven();
}

CapsuleFile parse_capsule(const py::bytes& data) {
    const std::string bytes = data;
    return released([&] { return proven(CapsuleFile::parse(bytes)); });
}

CapsuleFile read_capsule(const std::string& path) {
    return released([&] { return proven(CapsuleFile::read(path)); });
}

/// Returns rounds, messages, bytes sent and bytes reduced of the rank with the most.
std::tuple<long long, long long, double, double> cost(const CapsuleFile& self, std::size_t nbytes) {
    const VerifiedCapsule capsule = value_or_throw(self.only());
    const schedule::Shape& shape = capsule.schedule().shape;
    const auto block = comm::block_bytes(shape.kind, nbytes, shape.ranks);
    const schedule::Cost cost = capsule.source()->cost(shape, static_cast<double>(block));
    return {cost.rounds, cost.messages, cost.bytes_sent, cost.bytes_reduced};
}

/// Returns the predictions for a job that has loaded the capsule, and their assumptions.
std::pair<std::vector<Prediction>, py::object> predict(const CapsuleFile& self,
                                                       const topo::JobTopology& job,
                                                       std::size_t nbytes) {
    const VerifiedCapsule capsule = value_or_throw(self.only());
    const auto choice = released([&]() -> Result<comm::ImaginedChoice> {
        if (capsule.switches_phases())
            return Status::unsupported(
                "no group chooses a capsule that switches phases: replay() plays it through");
        auto catalogue = std::make_shared<schedule::Catalogue>(*schedule::built_in());
        PCCL_TRY(catalogue->add(capsule.source(schedule::SizeRange{})));
        return comm::explain(job, capsule.schedule().shape.kind, nbytes, std::move(catalogue));
    });
    return {choice.ways, to_python(choice.counted_on)};
}

std::optional<std::string> signer(const CapsuleFile& self) {
    return self.seal() ? std::optional(capsule::to_hex(self.seal()->signer)) : std::nullopt;
}

CapsuleFile signed_with(const CapsuleFile& self, const std::string& pem) {
    return self.signed_with(value_or_throw(sys::secret_key_in(pem)));
}

void check_signer(const CapsuleFile& self, const std::string& keys) {
    throw_unless_ok(value_or_throw(capsule::TrustedKeys::read(keys)).check(self.seal()));
}

// Binds programs: steps, and foreign files.
void bind_programs(extension::Module& module) {
    module.def("schedule_of", &schedule_of, arg("name"), arg("collective"), arg("ranks"),
               arg("root"), arg("chunks"), arg("slots"), arg("programs"),
               arg("phases") = std::vector<std::string>());
    module.def("programs_of", &raw_programs_of, arg("schedule"));
    module.def(
        "import_msccl",
        [](const std::string& xml, const std::string& file, const std::string& name,
           const std::string& collective, Rank root) {
            std::optional<capsule::msccl::AlgoCollective> custom;
            if (!collective.empty()) custom = {.kind = kind_of(collective), .root = root};
            return released(
                [&] { return file_of(capsule::import_msccl(xml, file, name, custom)); });
        },
        arg("xml"), arg("file"), arg("name"), arg("collective"), arg("root"));
    module.def(
        "import_mscclpp",
        [](const std::string& json, const std::string& file, const std::string& name) {
            return released([&] { return file_of(capsule::import_mscclpp(json, file, name)); });
        },
        arg("json"), arg("file"), arg("name"));
    module.def(
        "unproven_schedule",
        [](const py::bytes& data, int ranks) {
            return value_or_throw(capsule::unproven_schedule(std::string(data), ranks));
        },
        arg("data"), arg("ranks"));
    module.def(
        "unproven_msccl",
        [](const std::string& xml, const std::string& file) {
            return value_or_throw(capsule::unproven_msccl(xml, file));
        },
        arg("xml"), arg("file"));
    module.def(
        "unproven_mscclpp",
        [](const std::string& json, const std::string& file) {
            return value_or_throw(capsule::unproven_mscclpp(json, file));
        },
        arg("json"), arg("file"));
    module.def(
        "export_msccl",
        [](const CapsuleFile& file) {
            const VerifiedCapsule capsule = value_or_throw(file.only());
            return released([&] { return export_msccl(capsule); });
        },
        arg("capsule"));
    module.def(
        "check_sizes",
        [](const std::string& sizes) {
            return capsule::to_text(value_or_throw(capsule::parse_sizes(sizes)));
        },
        arg("sizes"));
}

}  // namespace

void bind_capsule(extension::Module& module) {
    bind_programs(module);
    extension::Class<CapsuleFile> cls(module, "Capsule");
    cls.def_static("make", &make_capsule, arg("schedule"), py::kw_only(), arg("author"),
                   arg("licence"), arg("note"), arg("sizes"), arg("protocol"));
    cls.def_static("join", &join, arg("capsules"));
    cls.def_property_readonly(
        "ranks", [](const CapsuleFile& self) { return py::tuple(py::cast(self.ranks())); });
    cls.def(
        "for_ranks",
        [](const CapsuleFile& self, int ranks) {
            const VerifiedCapsule capsule = value_or_throw(self.for_ranks(ranks));
            return self.ranks().size() == 1 ? self : CapsuleFile(capsule);
        },
        arg("ranks"));
    cls.def_property_readonly("protocol", [](const CapsuleFile& self) {
        const auto& protocol = self.description().protocol;
        return protocol ? std::string(schedule::to_string(*protocol)) : std::string();
    });
    cls.def_static("parse", &parse_capsule, arg("data"));
    cls.def_static("read", &read_capsule, arg("path"));
    cls.def_property_readonly("digest",
                              [](const CapsuleFile& self) { return sys::to_hex(self.digest()); });
    cls.def_property_readonly("manifest", [](const CapsuleFile& self) {
        return py::module_::import("json").attr("loads")(self.manifest());
    });
    cls.def_property_readonly(
        "schedule", [](const CapsuleFile& self) { return value_or_throw(self.only()).schedule(); });
    cls.def_property_readonly(
        "data", [](const CapsuleFile& self) { return py::bytes(self.signed_bytes()); });
    cls.def_property_readonly("signer", &signer);
    cls.def("signed_with", &signed_with, arg("pem"));
    cls.def("check_signer", &check_signer, arg("keys"));
    cls.def("cost", &cost, arg("nbytes"));
    cls.def("predict", &predict, arg("job"), arg("nbytes"));
}

}  // namespace pccl::bindings
