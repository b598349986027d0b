// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/capsules/environment_capsules.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/capsule/sizes.h"

namespace pccl::comm {
namespace {

namespace fs = std::filesystem;
using capsule::CapsuleFile;
using capsule::VerifiedCapsule;

constexpr std::size_t kMostFiles = 256;

Status add_folder(const fs::path& folder, std::vector<std::string>& files) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
        if (entry->path().extension() == ".capsule") files.push_back(entry->path().string());
    if (!error) return Status::ok();
    return Status::unavailable(
        concat("the folder ", folder.string(), " cannot be read: ", error.message()));
}

Status add_files(const std::string& path, std::vector<std::string>& files) {
    std::error_code error;
    const fs::file_status found = fs::status(path, error);
    if (fs::is_directory(found)) return add_folder(path, files);
    files.push_back(path);
    if (fs::is_regular_file(found)) return Status::ok();
    const std::string fault = fs::exists(found) ? " is neither a file nor a folder"
                              : found.type() == fs::file_type::not_found
                                  ? ": there is no such file"
                                  : concat(" cannot be read: ", error.message());
    return Status::unavailable(
        concat(path, fault, "; name files, and folders of files *.capsule, between \":\""));
}

Result<std::vector<std::string>> files_of(std::string_view paths) {
    std::vector<std::string> files;
    while (!paths.empty()) {
        const std::string_view path = paths.substr(0, paths.find(':'));
        paths.remove_prefix(std::min(path.size() + 1, paths.size()));
        if (!path.empty()) PCCL_TRY(add_files(std::string(path), files));
    }
    if (files.size() <= kMostFiles) return files;
    return Status::invalid_argument(
        concat("it names ", files.size(), " files; at most ", kMostFiles, " are read"));
}

Result<VerifiedCapsule> usable_in(const Result<CapsuleFile>& file, int ranks) {
    PCCL_TRY(file.status());
    PCCL_TRY(capsule::check_trusted(*file));
    PCCL_ASSIGN_OR_RETURN(VerifiedCapsule capsule, file->for_ranks(ranks));
    if (!capsule.switches_phases()) return capsule;
    return Status::unsupported(
        concat("capsule ", capsule.description().name,
               " switches phases of the network: load it into the group of all ranks"));
}

}  // namespace

Result<std::vector<VerifiedCapsule>> environment_capsules(std::string_view paths, int ranks) {
    PCCL_ASSIGN_OR_RETURN(const std::vector<std::string> files, files_of(paths));
    std::vector<VerifiedCapsule> capsules;
    for (const std::string& path : files) {
        const auto file = CapsuleFile::read(path);
        // Proving takes long, and users with many groups list capsules for each.
        if (file.is_ok() && !file->has(ranks)) continue;
        const auto usable = usable_in(file, ranks);
        if (!usable.is_ok())
            log(LogLevel::kWarning, "PCCL_CAPSULES: ", usable.status().message());
        else
            capsules.push_back(*usable);
    }
    // The order must not depend on the file names, which may differ between hosts.
    std::ranges::sort(capsules, {}, [](const VerifiedCapsule& each) {
        return std::pair(each.description().name, each.file_digest());
    });
    return capsules;
}

std::uint64_t digest_of(const std::vector<VerifiedCapsule>& capsules) {
    if (capsules.empty()) return 0;
    Digest digest;
    for (const VerifiedCapsule& each : capsules) digest.add(sys::to_hex(each.file_digest()));
    return digest.value();
}

Status check_same_capsules(const std::vector<bootstrap::Endpoint>& endpoints) {
    std::vector<Rank> others;
    for (const bootstrap::Endpoint& endpoint : endpoints)
        if (endpoint.capsules != endpoints.front().capsules) others.push_back(endpoint.rank);
    if (others.empty()) return Status::ok();
    return Status::mismatch(others.front(),
                            concat("PCCL_CAPSULES gives ", listed(others),
                                   " other capsules than rank 0; give all ranks the same files"));
}

std::shared_ptr<const schedule::Catalogue> with_capsules(
    const std::shared_ptr<const schedule::Catalogue>& known,
    const std::vector<VerifiedCapsule>& capsules, const Tuning& tuning) {
    if (capsules.empty()) return known;
    auto catalogue = std::make_shared<schedule::Catalogue>(*known);
    for (const VerifiedCapsule& each : capsules) {
        schedule::SourcePtr source = each.source();
        if (tuning.has_measured(*source)) source = each.source(capsule::kByName);
        if (const Status added = catalogue->add(std::move(source)); !added.is_ok())
            log(LogLevel::kWarning, "PCCL_CAPSULES: ", added.message());
    }
    return catalogue;
}

}  // namespace pccl::comm
