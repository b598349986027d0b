// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/memory_context.h"

#include "csrc/base/assert.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/shm/rma.h"

namespace pccl::comm {
namespace {

constexpr std::string_view kReservedPrefix = "pccl/";

std::string key_of(const std::string& workspace, Rank rank) { return concat(workspace, "/", rank); }

}  // namespace

Status check_workspace_name(const std::string& name) {
    if (!name.empty() && name.size() <= kLongestWorkspaceName &&
        !name.starts_with(kReservedPrefix) && name.find('\0') == std::string::npos)
        return Status::ok();
    return Status::invalid_argument(
        concat("workspace name \"", name.substr(0, 40), "\": use 1 to ", kLongestWorkspaceName,
               " bytes, none of them 0, that do not start with ", kReservedPrefix));
}

Result<MemoryContext::Span> MemoryContext::allocate_workspace(const std::string& name,
                                                              std::size_t bytes) {
    PCCL_TRY(check_workspace_name(name));
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(Workspace* const made, make(name, bytes));
    const std::string key = concat("memory/", name, "/", allocations_[name]);
    if (options_.size > 1) {
        const Status published = options_.store->set(
            key_of(key, options_.rank), transport::serialise(made->registration->descriptor()));
        if (!published.is_ok()) {
            workspaces_.erase(name);
            return published;
        }
    }
    ++allocations_[name];
    made->key = key;
    return made->mapping->memory();
}

Result<abi::MemoryDescriptor> MemoryContext::add_workspace(const std::string& name,
                                                           std::size_t bytes) {
    PCCL_TRY(check_workspace_name(name));
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(const Workspace* const made, make(name, bytes));
    return made->registration->descriptor();
}

Result<MemoryContext::Workspace*> MemoryContext::make(const std::string& name, std::size_t bytes) {
    if (bytes == 0)
        return Status::invalid_argument(concat("workspace \"", name, "\" has no bytes"));
    if (workspaces_.contains(name))
        return Status::invalid_argument(
            concat("workspace \"", name, "\" exists; release it first"));
    PCCL_ASSIGN_OR_RETURN(transport::Mapping mapping, transport::Mapping::shareable(name, bytes));
    PCCL_ASSIGN_OR_RETURN(auto mine, register_mapping(mapping));
    auto shared = std::make_shared<const transport::Mapping>(std::move(mapping));
    Workspace made{std::move(shared), std::move(mine), {}, {}, {}};
    return &workspaces_.emplace(name, std::move(made)).first->second;
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
    std::string key;
    abi::MemoryDescriptor mine{};
    {
        const std::lock_guard lock(mutex_);
        PCCL_ASSIGN_OR_RETURN(const Workspace* const workspace, find(name));
        if (!workspace->parts.empty()) return Status::ok();
        key = workspace->key;
        mine = workspace->registration->descriptor();
    }
    std::vector<abi::MemoryDescriptor> parts;
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < options_.size; ++rank) {
        if (rank == options_.rank) {
            parts.push_back(mine);
            continue;
        }
        // After one missing rank the time is over: the others are only polled once.
        auto part = fetch(key, rank, missing.empty() ? deadline : Deadline::after({}));
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
    return complete_workspace(name, std::move(parts));
}

Result<abi::MemoryDescriptor> MemoryContext::fetch(const std::string& key, Rank rank,
                                                   Deadline deadline) const {
    PCCL_ASSIGN_OR_RETURN(const std::string blob, options_.store->get(key_of(key, rank), deadline));
    auto part = transport::parse_memory_descriptor(blob);
    if (!part.is_ok()) return part.status().with_context(concat("rank ", rank));
    return part;
}

Status MemoryContext::complete_workspace(const std::string& name,
                                         std::vector<abi::MemoryDescriptor> parts) {
    PCCL_ASSERT(parts.size() == static_cast<std::size_t>(options_.size));
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(Workspace* const workspace, find(name));
    const std::size_t mine = workspace->mapping->memory().size();
    for (Rank rank = 0; rank < options_.size; ++rank)
        if (const auto theirs = parts[static_cast<std::size_t>(rank)].bytes; theirs != mine)
            return Status::mismatch(
                rank, concat("workspace \"", name, "\": rank ", rank, " allocated ", theirs,
                             " bytes, this rank ", mine));
    workspace->parts = std::move(parts);
    return Status::ok();
}

Result<abi::MemoryDescriptor> MemoryContext::remote_memory(const std::string& name,
                                                           Rank rank) const {
    const std::lock_guard lock(mutex_);
    return part_of(name, rank);
}

Result<abi::MemoryDescriptor> MemoryContext::part_of(const std::string& name, Rank rank) const {
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
    PCCL_ASSIGN_OR_RETURN(const MappedMemory held, hold(name, rank));
    return held.memory;
}

Result<MappedMemory> MemoryContext::hold(const std::string& name, Rank rank) {
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(const abi::MemoryDescriptor part, part_of(name, rank));
    PCCL_ASSIGN_OR_RETURN(Workspace* const workspace, find(name));
    if (rank == options_.rank)
        return MappedMemory{workspace->mapping->memory(), workspace->mapping};
    auto& view = workspace->views[rank];
    if (view == nullptr) {
        auto mapped = transport::shm::map_memory(part);
        if (!mapped.is_ok())
            return mapped.status().with_message(concat(
                "workspace \"", name, "\": the part of rank ", rank, " cannot be mapped: ",
                mapped.status().message(), "; exchange it by send and recv, or by a collective"));
        view = std::make_shared<const transport::shm::MemoryView>(std::move(*mapped));
    }
    return MappedMemory{view->memory, view};
}

std::map<std::string, std::size_t> MemoryContext::sizes() const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::size_t> sizes;
    for (const auto& [name, workspace] : workspaces_)
        sizes.emplace(name, workspace.mapping->memory().size());
    return sizes;
}

Status MemoryContext::release(const std::string& name) {
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(const Workspace* const workspace, find(name));
    const std::string key = workspace->key;
    workspaces_.erase(name);
    return key.empty() || options_.size == 1 ? Status::ok()
                                             : options_.store->remove(key_of(key, options_.rank));
}

Result<MemoryContext::Workspace*> MemoryContext::find(const std::string& name) {
    const auto found = workspaces_.find(name);
    if (found == workspaces_.end())
        return Status::invalid_argument(concat("this rank has no workspace \"", name, "\""));
    return &found->second;
}

}  // namespace pccl::comm
