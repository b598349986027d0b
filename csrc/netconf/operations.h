// SPDX-License-Identifier: Apache-2.0

// NETCONF operations that a phase switch needs, as XML (RFC 6241, sections 7 and 8).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <pccl/export.h>

namespace pccl::netconf {

enum class Datastore { kRunning, kCandidate, kStartup };

/// Options of an <edit-config>.
struct EditArgs {
    Datastore target = Datastore::kCandidate;
    bool test_then_set = false;      // :validate
    bool rollback_on_error = false;  // :rollback-on-error
};

struct ConfirmArgs {
    std::chrono::seconds timeout{600};
    /// Token with which another session may confirm; the end of this session then undoes nothing.
    /// Empty: none.
    std::string persist = {};
};

/// Returns a <get-config>; `filter` is a subtree, as XML, or empty for all.
[[nodiscard]] PCCL_API std::string get_config(Datastore source, std::string_view filter);
/// Returns a <get>: the running configuration, and state that no configuration contains.
[[nodiscard]] PCCL_API std::string get(std::string_view filter);
/// Returns an <edit-config>; `config` is the XML to merge, whose parts with nc:operation are
/// created, replaced, deleted.
[[nodiscard]] PCCL_API std::string edit_config(std::string_view config, const EditArgs& args = {});
[[nodiscard]] PCCL_API std::string lock(Datastore target);
[[nodiscard]] PCCL_API std::string unlock(Datastore target);
[[nodiscard]] PCCL_API std::string discard_changes();
/// Returns a <copy-config>: `source` replaces all of `target`.
[[nodiscard]] PCCL_API std::string copy_config(Datastore source, Datastore target);
/// Returns a final <commit>; `persist_id` is required where another session began it.
[[nodiscard]] PCCL_API std::string commit(std::string_view persist_id = {});
/// Returns a <commit> that the server undoes unless a further commit follows in time.
[[nodiscard]] PCCL_API std::string confirmed_commit(const ConfirmArgs& args);
[[nodiscard]] PCCL_API std::string cancel_commit(std::string_view persist_id = {});

}  // namespace pccl::netconf
