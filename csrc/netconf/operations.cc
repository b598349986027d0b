// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/operations.h"

#include "csrc/base/text/text.h"
#include "csrc/netconf/hello.h"
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::netconf {
namespace {

std::string_view name_of(Datastore store) {
    if (store == Datastore::kStartup) return "<startup/>";
    return store == Datastore::kRunning ? "<running/>" : "<candidate/>";
}

std::string on(std::string_view operation, std::string_view role, Datastore store) {
    return concat("<", operation, "><", role, ">", name_of(store), "</", role, "></", operation,
                  ">");
}

std::string with_id(std::string_view operation, std::string_view persist_id) {
    if (persist_id.empty()) return concat("<", operation, "/>");
    return concat("<", operation, "><persist-id>", sys::escaped_xml(persist_id), "</persist-id></",
                  operation, ">");
}

}  // namespace

std::string get_config(Datastore source, std::string_view filter) {
    std::string text = concat("<get-config><source>", name_of(source), "</source>");
    if (!filter.empty()) text += concat("<filter type=\"subtree\">", filter, "</filter>");
    return text + "</get-config>";
}

std::string get(std::string_view filter) {
    return concat("<get><filter type=\"subtree\">", filter, "</filter></get>");
}

std::string edit_config(std::string_view config, const EditArgs& args) {
    std::string text = concat("<edit-config><target>", name_of(args.target), "</target>");
    if (args.test_then_set) text += "<test-option>test-then-set</test-option>";
    if (args.rollback_on_error) text += "<error-option>rollback-on-error</error-option>";
    return text +
           concat("<config xmlns:nc=\"", kBaseNamespace, "\">", config, "</config></edit-config>");
}

std::string lock(Datastore target) { return on("lock", "target", target); }

std::string unlock(Datastore target) { return on("unlock", "target", target); }

std::string discard_changes() { return "<discard-changes/>"; }

std::string copy_config(Datastore source, Datastore target) {
    return concat("<copy-config><target>", name_of(target), "</target><source>", name_of(source),
                  "</source></copy-config>");
}

std::string commit(std::string_view persist_id) { return with_id("commit", persist_id); }

std::string confirmed_commit(const ConfirmArgs& args) {
    std::string text =
        concat("<commit><confirmed/><confirm-timeout>", args.timeout.count(), "</confirm-timeout>");
    if (!args.persist.empty())
        text += concat("<persist>", sys::escaped_xml(args.persist), "</persist>");
    return text + "</commit>";
}

std::string cancel_commit(std::string_view persist_id) {
    return with_id("cancel-commit", persist_id);
}

}  // namespace pccl::netconf
