// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <pccl/cluster.h>
#include "csrc/cluster/cluster_context.h"
#include "csrc/cluster/file/cluster_file.h"

namespace pccl::cluster {

Cluster::Cluster(std::unique_ptr<ClusterContext> context) : context_(std::move(context)) {}
Cluster::~Cluster() = default;

Result<std::unique_ptr<Cluster>> Cluster::open(Description description) {
    PCCL_ASSIGN_OR_RETURN(auto context, ClusterContext::open(std::move(description)));
    return std::unique_ptr<Cluster>(new Cluster(std::move(context)));
}

Result<std::unique_ptr<Cluster>> Cluster::load(const std::string& path) {
    PCCL_ASSIGN_OR_RETURN(auto context, ClusterContext::load(path));
    return std::unique_ptr<Cluster>(new Cluster(std::move(context)));
}

Result<std::unique_ptr<Cluster>> Cluster::parse(std::string_view text, std::string_view name) {
    PCCL_ASSIGN_OR_RETURN(Description description, parse_cluster_file(text, name));
    return open(std::move(description));
}

const Description& Cluster::description() const { return context_->description(); }

Status Cluster::register_phase(Phase phase) { return context_->register_phase(std::move(phase)); }

Status Cluster::register_transform(const std::string& from, const std::string& to,
                                   Transform transform) {
    return context_->register_transform(from, to, std::move(transform));
}

Result<Plan> Cluster::plan(const std::string& from, const std::string& to) const {
    return context_->plan(from, to);
}

const std::string& Cluster::current() const { return context_->current(); }
std::uint32_t Cluster::generation() const { return context_->generation(); }
Status Cluster::degraded() const { return context_->degraded(); }

Inspection Cluster::inspect(Duration timeout, const Interrupted& interrupted) {
    return context_->inspect(timeout, interrupted);
}

Status Cluster::adopt(Duration timeout, const Interrupted& interrupted) {
    return context_->adopt(timeout, interrupted);
}

Result<std::string> Cluster::inherit(const SwitchOptions& options) {
    return context_->inherit(options);
}

Status Cluster::pre_commit(const std::string& phase, const SwitchOptions& options) {
    return context_->pre_commit(phase, options);
}

Status Cluster::pre_commit(const SwitchOptions& options) { return context_->pre_commit(options); }
Result<Report> Cluster::commit() { return context_->commit(); }
Status Cluster::discard() { return context_->discard(); }

Result<Report> Cluster::switch_phase(const std::string& phase, const SwitchOptions& options) {
    return context_->switch_phase(phase, options);
}

Status Cluster::command(const std::string& of_switch, const Command& command) {
    PCCL_ASSIGN_OR_RETURN(Switch* const found, context_->switch_called(of_switch));
    return found->command(command);
}

Result<std::vector<Command>> Cluster::commands(const std::string& of_switch) const {
    PCCL_ASSIGN_OR_RETURN(const Switch* const found, context_->switch_called(of_switch));
    return found->commands();
}

Status Cluster::discard_commands(const std::string& of_switch) {
    PCCL_ASSIGN_OR_RETURN(Switch* const found, context_->switch_called(of_switch));
    found->drop_commands();
    return Status::ok();
}

Result<Report> Cluster::commit_switch(const std::string& of_switch, const SwitchOptions& options) {
    PCCL_ASSIGN_OR_RETURN(Switch* const found, context_->switch_called(of_switch));
    return found->commit(options);
}

Result<std::optional<Circuits>> Cluster::proven(const std::string& of_switch) const {
    PCCL_ASSIGN_OR_RETURN(const Switch* const found, context_->switch_called(of_switch));
    return found->proven();
}

Result<Sight> Cluster::look(const std::string& of_switch, Duration timeout) {
    PCCL_ASSIGN_OR_RETURN(Switch* const found, context_->switch_called(of_switch));
    return found->look(timeout);
}

Result<std::vector<int>> Cluster::dark(const std::string& of_switch, Duration timeout) {
    PCCL_ASSIGN_OR_RETURN(OpticalSwitch* const found, context_->optical_switch(of_switch));
    return found->dark(timeout);
}

std::vector<std::string> Cluster::audit() const { return context_->audit(); }

}  // namespace pccl::cluster
