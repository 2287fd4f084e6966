#include "tools/report/json/machine_json.h"

#include "tools/report/json/json.h"

namespace ghostrank {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json build_json(const BuildFacts& build) {
  return {{"commit", text_or_null(build.commit)},
          {"compiler", text_or_null(build.compiler)},
          {"type", text_or_null(build.type)}};
}

void add_machine(Json& json, const HostReport& host) {
  json["cpu"] = text_or_null(host.cpu);
  json["kernel"] = text_or_null(host.kernel);
  json["libfabric"] = text_or_null(host.libfabric);
}

}  // namespace ghostrank
