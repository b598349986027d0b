// The operations of NETCONF that switching needs, as XML (RFC 6241, sections 7 and 8).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "csrc/base/export.h"

namespace pccl::netconf {

enum class Datastore { kRunning, kCandidate, kStartup };

/// How an <edit-config> is carried out.
struct EditArgs {
    Datastore target = Datastore::kCandidate;
    bool test_then_set = false;      // :validate
    bool rollback_on_error = false;  // :rollback-on-error
};

struct ConfirmArgs {
    std::chrono::seconds timeout{600};
    /// Another session may confirm with it, and the end of this one undoes nothing; empty: none.
    std::string persist = {};
};

/// `filter`: a subtree, as XML; empty for all.
[[nodiscard]] PCCL_API std::string get_config(Datastore source, std::string_view filter);
/// What is running, and state that no configuration has.
[[nodiscard]] PCCL_API std::string get(std::string_view filter);
/// `config`: what is to be merged, as XML; parts with nc:operation are created, replaced, deleted.
[[nodiscard]] PCCL_API std::string edit_config(std::string_view config, const EditArgs& args = {});
[[nodiscard]] PCCL_API std::string lock(Datastore target);
[[nodiscard]] PCCL_API std::string unlock(Datastore target);
[[nodiscard]] PCCL_API std::string discard_changes();
/// Replaces all of `target` by what is in `source`.
[[nodiscard]] PCCL_API std::string copy_config(Datastore source, Datastore target);
/// For good; `persist_id` where another session began it.
[[nodiscard]] PCCL_API std::string commit(std::string_view persist_id = {});
/// Undone by the server unless a commit follows in time.
[[nodiscard]] PCCL_API std::string confirmed_commit(const ConfirmArgs& args);
[[nodiscard]] PCCL_API std::string cancel_commit(std::string_view persist_id = {});

}  // namespace pccl::netconf
