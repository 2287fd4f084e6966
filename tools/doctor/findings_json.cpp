#include "tools/doctor/findings.h"
#include "tools/report/json/json.h"

namespace ghostrank {

std::string findings_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& f : findings) {
    list.push_back({{"area", f.area},
                    {"name", f.name},
                    {"value", f.value},
                    {"chosen", f.chosen},
                    {"weak", f.weak},
                    {"remedy", f.remedy}});
  }
  return dump({{"schema", "ghostrank/doctor/1"}, {"findings", std::move(list)}});
}

}  // namespace ghostrank
