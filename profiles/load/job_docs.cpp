// The tables of keys as JSON Schemas and as Markdown. Tests compare profiles/schema/ and the
// reference in docs/job-format.md with the output of these functions.
#include <cmath>

#include "profiles/device/device.h"
#include "profiles/input/quantity.h"
#include "profiles/load/job_schema.h"
#include "profiles/load/json.h"
#include "profiles/load/locate.h"
#include "profiles/load/sections/events.h"
#include "profiles/load/sections/hosts.h"
#include "profiles/load/variables.h"
#include "profiles/model/model.h"
#include "profiles/planners/background/background.h"

namespace ghostrank {
namespace {

bool has_default(const Key& key) { return key.standard != kAbsent && key.standard != kRequired; }

Json number_json(double value) {
  if (std::abs(value) < 0x1p63 && value == std::trunc(value))
    return static_cast<std::int64_t>(value);
  return value;
}

void add_range(Json& schema, const Key& key) {
  if (key.min == key.max) return;
  schema["minimum"] = number_json(key.min);
  schema["maximum"] = number_json(key.max);
}

Json form_of(const Key& key) {
  switch (key.type) {
    case KeyType::integer:
    case KeyType::number: {
      Json schema{{"type", key.type == KeyType::integer ? "integer" : "number"}};
      add_range(schema, key);
      return schema;
    }
    case KeyType::boolean:
      return {{"type", "boolean"}};
    case KeyType::string:
      return {{"type", Json::array({"string", "number", "null"})}};
    case KeyType::choice:
      return {{"enum", words(key.allowed)}};
    case KeyType::auto_number:
    case KeyType::auto_integer: {
      Json number{{"type", key.type == KeyType::auto_integer ? "integer" : "number"}};
      add_range(number, key);
      return {{"anyOf", Json::array({Json{{"const", "auto"}}, number})}};
    }
    case KeyType::rate:
      return {{"anyOf",
               Json::array(
                   {Json{{"const", 0}},
                    Json{{"type", "string"},
                         {"pattern", "^(0|unlimited|[0-9]+(\\.[0-9]+)? ?(T|G|M|K|k)?bps)$"}}})}};
    case KeyType::size:
      return {
          {"anyOf", Json::array({Json{{"type", "integer"}, {"minimum", 0}},
                                 Json{{"type", "string"},
                                      {"pattern", "^[0-9]+(\\.[0-9]+)? ?([KMGT](iB)?|B)?$"}}})}};
    case KeyType::integers: {
      Json items{{"type", "integer"}};
      add_range(items, key);
      return {{"type", "array"}, {"items", items}};
    }
    case KeyType::profile:
      return {{"anyOf", Json::array({Json{{"type", "string"}},
                                     Json{{"$ref", std::string(key.path) + ".schema.json"}}})}};
    case KeyType::any:
      break;
  }
  if (key.available) return Json::object();  // the table of this key's mapping gives its form
  // Reserved keys accept only an empty list or mapping.
  if (key.standard == "{}") return {{"type", "object"}, {"maxProperties", 0}};
  return {{"type", "array"}, {"maxItems", 0}};
}

Json default_json(const Key& key) {
  if (key.type == KeyType::boolean) return key.standard == "true";
  if (key.type == KeyType::integer || key.type == KeyType::number)
    return number_json(parse_number(key.standard).value_or(0));
  if (key.standard == "[]") return Json::array();
  if (key.standard == "{}") return Json::object();
  return std::string(key.standard);
}

// "megatron, torchtitan: pipeline stages", from the columns of the key's row.
std::string meaning(const Key& key) {
  std::vector<std::string> whose;
  for (const std::string_view column : {key.frameworks, key.libraries, key.fabrics})
    for (std::string& word : words(column)) whose.push_back(std::move(word));
  std::vector<std::string> only;
  for (const Beside& one : key.beside)
    if (!one.key.empty())
      only.push_back((one.others ? "not with " : "only with ") + std::string(one.key) + ": " +
                     join(words(one.values), " or "));
  if (key.schemes)
    only.push_back("only with " + (key.only_schemes.empty()
                                       ? "schemes"
                                       : join(words(key.only_schemes), " or ") + " or a plugin's"));
  return join(whose, ", ") + (whose.empty() ? "" : ": ") + std::string(key.doc) +
         (only.empty() ? "" : " (" + join(only, "; ") + ")");
}

Json schema_of(const Key& key) {
  const bool fixed = !key.available && key.type != KeyType::any;
  Json schema = fixed ? Json{{"const", default_json(key)}} : form_of(key);
  schema["description"] =
      meaning(key) + (key.available ? "" : " (not available yet: leave at the default)");
  if (has_default(key)) schema["default"] = default_json(key);
  return schema;
}

Json open_object() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

// The mapping that a table of dotted paths describes.
Json object_of(std::span<const Key> table) {
  Json root = open_object();
  for (const Key& key : table) {
    if (!key.available && !has_default(key)) continue;
    Json* at = &root;
    std::string_view path = key.path;
    for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
      Json& group = (*at)["properties"][std::string(path.substr(0, dot))];
      if (group.is_null()) group = open_object();
      at = &group;
      path.remove_prefix(dot + 1);
    }
    (*at)["properties"][std::string(path)] = schema_of(key);
    if (key.standard == kRequired) (*at)["required"].push_back(std::string(path));
  }
  return root;
}

Json based_profile() {
  return {
      {"type", "object"},
      {"required", Json::array({"base"})},
      {"properties", {{"base", {{"type", "string"}, {"description", "profile to start from"}}}}}};
}

Json with_schema_key(Json object, std::string_view name) {
  object["properties"]["schema"] = {{"const", std::string(name)}};
  return object;
}

Json list_of(const Json& items) { return {{"type", "array"}, {"items", items}}; }

Json hosts_form() {
  Json host = object_of(host_keys());
  host["properties"]["nics"].update(list_of(object_of(host_nic_keys())));
  return list_of(host);
}

Json placement_form() {
  const Json text{{"type", "string"}};
  return {{"anyOf", Json::array({text, list_of(text)})}};
}

std::string document(const char* title, const Json& body) {
  Json root{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  root.update(body);
  return root.dump(2) + "\n";
}

std::string code(std::string_view text) {
  std::string out = "`";
  out += text;
  return out + "`";
}

std::string code_list(std::string_view blank_separated) {
  std::vector<std::string> quoted;
  for (const std::string& word : words(blank_separated)) quoted.push_back(code(word));
  return join(quoted, ", ");
}

std::string type_text(const Key& key) {
  const auto ranged = [&](const char* name) {
    if (key.min == key.max) return std::string(name);
    return std::string(name) + ", " + number_text(key.min) + " to " + number_text(key.max);
  };
  const std::string later = key.later.empty() ? "" : "; later " + code_list(key.later);
  switch (key.type) {
    case KeyType::integer:
      return ranged("integer");
    case KeyType::number:
      return ranged("number");
    case KeyType::boolean:
      return "true or false";
    case KeyType::string:
      return "text" + later;
    case KeyType::choice:
      return code_list(key.allowed) + later;
    case KeyType::auto_number:
      return "`auto` or a " + ranged("number");
    case KeyType::auto_integer:
      return "`auto` or an " + ranged("integer");
    case KeyType::rate:
      return "rate";
    case KeyType::size:
      return "size";
    case KeyType::integers:
      return "list of integers";
    case KeyType::profile:
      return "name, path or mapping";
    case KeyType::any:
      break;
  }
  if (key.standard == "{}") return "mapping";
  if (key.standard == kAbsent && key.available) return "mapping or path";
  return (key.allowed.empty() ? "" : code_list(key.allowed) + " or a ") + "list";
}

std::string default_text(const Key& key) {
  if (key.standard == kRequired) return "required";
  if (key.standard == kAbsent) return "–";
  return key.standard.empty() ? "empty" : code(key.standard);
}

// A bar would end the cell of a table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

std::string table_markdown(std::span<const Key> table) {
  std::string out = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const Key& key : table)
    if (key.available)
      out += "| " + code(key.path) + " | " + type_text(key) + " | " + default_text(key) + " | " +
             cell(meaning(key)) + " |\n";
  return out;
}

std::string reserved_markdown(std::span<const Key> table) {
  std::string out = "| key | accepted | meaning |\n|---|---|---|\n";
  for (const Key& key : table)
    if (!key.available)
      out += "| " + code(key.path) + " | " +
             (has_default(key) ? default_text(key) : std::string("nothing")) + " | " +
             meaning(key) + (key.later.empty() ? "" : ": " + std::string(key.later)) + " |\n";
  return out;
}

}  // namespace

std::string job_json_schema() {
  Json job = object_of(job_keys());
  job["properties"]["cluster"]["type"] = Json::array({"object", "string"});
  job["properties"]["hosts"].update(hosts_form());
  job["properties"]["background"].update(list_of(object_of(background_keys())));
  job["properties"]["events"].update(list_of(object_of(event_keys())));
  job["properties"]["placement"].update(placement_form());
  return document("ghostrank job", job);
}

std::string model_json_schema() {
  Json layers = object_of(layers_keys());
  layers["properties"]["layers"] = {
      {"type", "array"}, {"minItems", 1}, {"items", object_of(layer_keys())}};
  layers["properties"]["capture"] = object_of(capture_keys());
  const std::string_view name = kModelProfile.schema;
  return document("ghostrank model",
                  {{"anyOf", Json::array({with_schema_key(object_of(transformer_keys()), name),
                                          with_schema_key(object_of(convolutional_keys()), name),
                                          with_schema_key(object_of(recommendation_keys()), name),
                                          with_schema_key(object_of(recurrent_keys()), name),
                                          with_schema_key(layers, name), based_profile()})}});
}

std::string device_json_schema() {
  return document(
      "ghostrank device",
      {{"anyOf", Json::array({with_schema_key(object_of(device_keys()), kDeviceProfile.schema),
                              based_profile()})}});
}

std::string job_format_markdown() {
  return "### Job\n\n" + table_markdown(job_keys()) + "\nEach host:\n\n" +
         table_markdown(host_keys()) + "\nEach of its NICs:\n\n" + table_markdown(host_nic_keys()) +
         "\nEach background:\n\n" + table_markdown(background_keys()) + "\nEach event:\n\n" +
         table_markdown(event_keys()) + "\n### Reserved keys of a job\n\n" +
         reserved_markdown(job_keys()) + "\n### Model, `kind: transformer`\n\n" +
         table_markdown(transformer_keys()) + "\n### Model, `kind: convolutional`\n\n" +
         table_markdown(convolutional_keys()) + "\n### Model, `kind: recommendation`\n\n" +
         table_markdown(recommendation_keys()) + "\n### Model, `kind: recurrent`\n\n" +
         table_markdown(recurrent_keys()) + "\n### Model, `kind: layers`\n\n" +
         table_markdown(layers_keys()) + "\nEach layer:\n\n" + table_markdown(layer_keys()) +
         "\nIts `capture`:\n\n" + table_markdown(capture_keys()) + "\n### Device\n\n" +
         table_markdown(device_keys()) +
         "\n### Environment\n\nBeside the variables of the keys:\n\n" + variables_markdown();
}

}  // namespace ghostrank
