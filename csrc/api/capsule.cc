// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/capsule.h"

#include <utility>

#include <pccl/capsule.h>
#include "csrc/capsule/capsule_file.h"
#include "csrc/capsule/msccl/export.h"
#include "csrc/capsule/msccl/import.h"
#include "csrc/capsule/mscclpp/import.h"
#include "csrc/capsule/signature.h"
#include "csrc/capsule/sizes.h"

namespace pccl {
namespace {

using capsule::CapsuleFile;

Capsule capsule_of(CapsuleFile file) {
    return Capsule(std::make_shared<const CapsuleFile>(std::move(file)));
}

Result<Capsule> capsule_of(const Result<capsule::VerifiedCapsule>& imported) {
    PCCL_TRY(imported.status());
    return capsule_of(CapsuleFile(*imported));
}

}  // namespace

Capsule::Capsule(std::shared_ptr<const capsule::CapsuleFile> file) : file_(std::move(file)) {}

Result<Capsule> Capsule::load(const std::string& path) {
    PCCL_ASSIGN_OR_RETURN(CapsuleFile file, CapsuleFile::read(path));
    return capsule_of(std::move(file));
}

Result<Capsule> Capsule::parse(std::string bytes) {
    PCCL_ASSIGN_OR_RETURN(CapsuleFile file, CapsuleFile::parse(std::move(bytes)));
    return capsule_of(std::move(file));
}

Result<Capsule> Capsule::of(const std::vector<Capsule>& capsules) {
    std::vector<capsule::VerifiedCapsule> all;
    for (const Capsule& each : capsules)
        for (const int ranks : each.ranks()) {
            PCCL_ASSIGN_OR_RETURN(auto one, each.file_->for_ranks(ranks));
            all.push_back(std::move(one));
        }
    PCCL_ASSIGN_OR_RETURN(CapsuleFile file, CapsuleFile::of(std::move(all)));
    return capsule_of(std::move(file));
}

Result<Capsule> Capsule::import_msccl(std::string_view xml, std::string_view file,
                                      std::string_view name,
                                      const std::optional<CustomCollective>& custom) {
    std::optional<capsule::msccl::AlgoCollective> open;
    if (custom) open = {.kind = custom->kind, .root = custom->root};
    return capsule_of(capsule::import_msccl(xml, file, name, open));
}

Result<Capsule> Capsule::import_mscclpp(std::string_view json, std::string_view file,
                                        std::string_view name) {
    return capsule_of(capsule::import_mscclpp(json, file, name));
}

const std::string& Capsule::name() const { return file_->description().name; }
const std::string& Capsule::author() const { return file_->description().author; }
const std::string& Capsule::licence() const { return file_->description().licence; }
const std::string& Capsule::note() const { return file_->description().note; }
std::string Capsule::sizes() const { return capsule::to_text(file_->description().sizes); }
std::vector<int> Capsule::ranks() const { return file_->ranks(); }
const std::string& Capsule::manifest() const { return file_->manifest(); }
std::string Capsule::bytes() const { return file_->signed_bytes(); }
std::string Capsule::digest() const { return sys::to_hex(file_->digest()); }

std::string Capsule::signer() const {
    return file_->seal() ? capsule::to_hex(file_->seal()->signer) : std::string();
}

Status Capsule::verify() const { return file_->proven().status(); }

Result<CollectiveKind> Capsule::kind() const {
    PCCL_ASSIGN_OR_RETURN(const auto one, file_->for_ranks(ranks().front()));
    return one.schedule().shape.kind;
}

Result<std::string> Capsule::export_msccl(int ranks) const {
    PCCL_ASSIGN_OR_RETURN(const auto one, file_->for_ranks(ranks));
    return capsule::export_msccl(one);
}

}  // namespace pccl
