#include "csrc/comm/memory_context.h"

#include "csrc/base/listed.h"
#include "csrc/base/text.h"
#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/shm/rma.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kLongestWorkspaceName = 128;
constexpr std::string_view kReservedPrefix = "pccl/";

std::string key_of(const std::string& workspace, Rank rank) { return concat(workspace, "/", rank); }

}  // namespace

Result<MemoryContext::Span> MemoryContext::allocate_workspace(const std::string& name,
                                                              std::size_t bytes) {
    if (name.empty() || name.size() > kLongestWorkspaceName || name.starts_with(kReservedPrefix))
        return Status::invalid_argument(concat("workspace name \"", name.substr(0, 40),
                                               "\": use 1 to ", kLongestWorkspaceName,
                                               " bytes that do not start with ", kReservedPrefix));
    return allocate(name, bytes);
}

Result<MemoryContext::Span> MemoryContext::allocate(const std::string& name, std::size_t bytes) {
    if (bytes == 0)
        return Status::invalid_argument(concat("workspace \"", name, "\" has no bytes"));
    if (workspaces_.contains(name))
        return Status::invalid_argument(
            concat("workspace \"", name, "\" exists; release it first"));
    PCCL_ASSIGN_OR_RETURN(transport::Mapping mapping, transport::Mapping::shareable(name, bytes));
    PCCL_ASSIGN_OR_RETURN(auto mine, register_mapping(mapping));
    const std::string key = concat("memory/", name, "/", allocations_[name]);
    if (options_.size > 1)
        PCCL_TRY(options_.store->set(key_of(key, options_.rank),
                                     transport::serialise(mine->descriptor())));
    ++allocations_[name];
    const Span memory = mapping.memory();
    workspaces_.emplace(name, Workspace{std::move(mapping), std::move(mine), key, {}, {}});
    return memory;
}

Result<MemoryContext::Span> MemoryContext::predefined(const std::string& name, std::size_t bytes) {
    const auto found = workspaces_.find(name);
    return found != workspaces_.end() ? found->second.mapping.memory() : allocate(name, bytes);
}

Result<std::unique_ptr<transport::Registration>> MemoryContext::register_mapping(
    const transport::Mapping& mapping) {
    if (one_sided_ == nullptr) {
        PCCL_ASSIGN_OR_RETURN(one_sided_, transport::shm::ShmRma::create());
    }
    const Span memory = mapping.memory();
    return one_sided_->add({.data = memory.data(), .bytes = memory.size(), .file = mapping.file()});
}

Status MemoryContext::wait_workspace(const std::string& name, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(Workspace* const workspace, find(name));
    std::vector<abi::MemoryDescriptor> parts;
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < options_.size; ++rank) {
        // Once one rank is missing the time is up: the others are only looked for.
        auto part = fetch(*workspace, rank, missing.empty() ? deadline : Deadline::after({}));
        if (part.is_ok())
            parts.push_back(*part);
        else if (part.status().code() == StatusCode::kTimeout)
            missing.push_back(rank);
        else
            return part.status().with_context(concat("workspace \"", name, "\""));
    }
    if (!missing.empty())
        return Status::timeout(concat("workspace \"", name, "\": ", listed(missing), " of ",
                                      options_.size, " did not allocate in time"),
                               missing.front());
    workspace->parts = std::move(parts);
    return Status::ok();
}

Result<abi::MemoryDescriptor> MemoryContext::fetch(const Workspace& workspace, Rank rank,
                                                   Deadline deadline) const {
    if (rank == options_.rank) return workspace.registration->descriptor();
    PCCL_ASSIGN_OR_RETURN(const std::string blob,
                          options_.store->get(key_of(workspace.key, rank), deadline));
    auto part = transport::parse_memory_descriptor(blob);
    if (!part.is_ok()) return part.status().with_context(concat("rank ", rank));
    const std::size_t mine = workspace.mapping.memory().size();
    if (part->bytes == mine) return part;
    return Status::mismatch(
        rank, concat("rank ", rank, " allocated ", part->bytes, " bytes, this rank ", mine));
}

Result<abi::MemoryDescriptor> MemoryContext::remote_memory(const std::string& name,
                                                           Rank rank) const {
    if (rank < 0 || rank >= options_.size)
        return Status::invalid_argument(concat("rank ", rank, " is not one of ", options_.size));
    const auto found = workspaces_.find(name);
    if (found == workspaces_.end() || found->second.parts.empty())
        return Status::unavailable(concat("workspace \"", name,
                                          "\" is not known yet: allocate it and ",
                                          "call wait_workspace first"));
    return found->second.parts[static_cast<std::size_t>(rank)];
}

Result<MemoryContext::Span> MemoryContext::map_remote(const std::string& name, Rank rank) {
    PCCL_ASSIGN_OR_RETURN(const abi::MemoryDescriptor part, remote_memory(name, rank));
    PCCL_ASSIGN_OR_RETURN(Workspace* const workspace, find(name));
    if (rank == options_.rank) return workspace->mapping.memory();
    auto view = workspace->views.find(rank);
    if (view == workspace->views.end()) {
        auto mapped = transport::shm::map_memory(part);
        if (!mapped.is_ok()) return mapped.status().with_context(concat("rank ", rank));
        view = workspace->views.emplace(rank, std::move(*mapped)).first;
    }
    return view->second.memory;
}

Status MemoryContext::release(const std::string& name) {
    PCCL_ASSIGN_OR_RETURN(const Workspace* const workspace, find(name));
    const std::string key = key_of(workspace->key, options_.rank);
    workspaces_.erase(name);
    return options_.size > 1 ? options_.store->remove(key) : Status::ok();
}

Result<MemoryContext::Span> MemoryContext::grow_temp(std::size_t bytes) {
    // Twice as much each time: a slowly growing demand must not allocate at every call.
    const std::size_t wanted = std::max({bytes, 2 * temp_.memory().size(), 64 * kKiB});
    temp_ = transport::Mapping();
    PCCL_ASSIGN_OR_RETURN(temp_, transport::Mapping::anonymous(wanted));
    return temp_.memory().first(bytes);
}

Result<MemoryContext::Workspace*> MemoryContext::find(const std::string& name) {
    const auto found = workspaces_.find(name);
    if (found == workspaces_.end())
        return Status::invalid_argument(concat("this rank has no workspace \"", name, "\""));
    return &found->second;
}

}  // namespace pccl::comm
