#include "profiles/load/files/in_place.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "profiles/input/named_text.h"
#include "profiles/load/files/node_links.h"
#include "profiles/load/files/topology.h"
#include "profiles/planners/compression/times.h"
#include "profiles/planners/gradient_laws.h"

namespace ghostrank {
namespace {

// A key whose value names a file, unless it is a word that means something else.
struct FileKey {
  std::string_view path;
  bool (*names_file)(const std::string& value);
};
constexpr std::array kKeys{
    FileKey{"cluster.nic.rates", [](const std::string& value) { return !value.empty(); }},
    FileKey{"cluster.intra_node.links",
            [](const std::string& value) { return is_node_links_file(value); }},
    FileKey{"cluster.topology.kind",
            [](const std::string& value) { return is_topology_file(value); }},
    FileKey{"cluster.topology.placement",
            [](const std::string& value) {
              return value != "packed" && value != "spread" && value != "random";
            }},
    FileKey{"tensors.overlap",
            [](const std::string& value) {
              return value != "random" && value != "all" && value != "none";
            }},
    FileKey{"compression.costs",
            [](const std::string& value) { return !names_shipped_costs(value); }}};

YamlValue text_value(const YamlValue& named, std::string text) {
  if (!is_text(text)) text += '\n';
  YamlValue value = named;
  value.quoted = true;
  value.text = std::move(text);
  return value;
}

// Laws name files inside rules, too.
void put_histograms_in_place(YamlValue& value, const std::string& near) {
  for (YamlValue& child : value.children) put_histograms_in_place(child, near);
  if (!value.is_scalar()) return;
  const std::string whole = law_with_file(value.text, near);
  value.quoted |= whole != value.text;
  value.text = whole;
}

}  // namespace

void put_files_in_place(const Settings& in, const std::string& near,
                        std::map<std::string, YamlValue>& resolved) {
  for (const Setting& setting : in.all()) {
    const std::string key(setting.key->path);
    if (!setting.given || !setting.raw) continue;
    if (key == "tensors.distribution") {
      put_histograms_in_place(resolved[key] = *setting.raw, near);
      continue;
    }
    const auto known = std::find_if(kKeys.begin(), kKeys.end(),
                                    [&](const FileKey& one) { return one.path == key; });
    if (known == kKeys.end() || !known->names_file(setting.text)) continue;
    if (std::optional<NamedText> file = named_text(setting.text, key, near))
      resolved[key] = text_value(*setting.raw, std::move(file->text));
  }
}

}  // namespace ghostrank
