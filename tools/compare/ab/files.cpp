// A comparison as JSON (schema ghostrank/compare/1), read back, and as CSV.

#include "profiles/error.h"
#include "profiles/input/input_file.h"
#include "tools/compare/ab/comparison.h"

namespace ghostrank {
namespace {

constexpr const char* kSchema = "ghostrank/compare/1";

Json interval_json(const std::optional<Interval>& ci) {
  return ci ? Json::array({ci->low, ci->high}) : Json(nullptr);
}

// {"collectives.allreduce": "ring"}
Json settings_json(const std::vector<std::string>& settings) {
  Json json = Json::object();
  for (const std::string& setting : settings) {
    const std::size_t sign = setting.find('=');
    json[setting.substr(0, sign)] = setting.substr(sign + 1);
  }
  return json;
}

std::vector<std::string> settings_from(const Json& json) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : json.items())
    settings.push_back(key + "=" + value.get<std::string>());
  return settings;
}

Json variant_json(const Variant& variant, const VariantSummary& v) {
  Json json{{"name", variant.name},
            {"set", settings_json(variant.settings)},
            {"runs", v.runs},
            {"retried_runs", v.retried}};
  if (v.runs == 0) return json;
  const AbRun& t = v.typical;
  json["step_time"] = {
      {"median", v.median}, {"ci95", interval_json(v.ci95)}, {"deterministic", v.deterministic}};
  json["bytes"] = count_json(t.bytes);
  json["messages"] = count_json(t.messages);
  json["packets"] = or_null(t.packets);
  json["header_share"] = or_null(t.header_share);
  json["header_basis"] = t.header_basis.empty() ? Json(nullptr) : Json(t.header_basis);
  json["retransmissions"] = or_null(t.retransmissions);
  json["compute_seconds"] = t.compute_seconds;
  json["exposed_comm_seconds"] = t.exposed_seconds;
  json["bubble_seconds"] = t.bubble_seconds;
  json["collective_seconds"] = or_null(t.collective_seconds);
  json["busiest_nic_bytes"] = count_json(t.busiest_nic_bytes);
  json["links"] = {{"nic_busy", or_null(t.nic_busy)},
                   {"helper_busy", or_null(t.helper_busy)},
                   {"hottest_busy", or_null(t.link_busy)},
                   {"switch_busy", or_null(t.switch_busy)},
                   {"hottest", t.hottest_link.empty() ? Json(nullptr) : Json(t.hottest_link)}};
  json["cpu_seconds_per_GB"] = or_null(t.cpu_seconds_per_GB);
  json["transport"] = t.transport;
  json["schemes"] = t.schemes;
  json["dilation"] = count_json(t.dilation);
  json["bottleneck"] = t.bottleneck.empty() ? Json(nullptr) : Json(t.bottleneck);
  json["unfaithful_runs"] = v.unfaithful;
  json["reason"] = v.reason;
  return json;
}

Json bounds_json(const LinkBounds& bounds) {
  return {{"payload", or_null(bounds.payload)}, {"wire", or_null(bounds.wire)}};
}

Json ratio_json(const AbComparison& c, const RatioSummary& r) {
  return {{"of", c.variants[r.of].name},
          {"to", c.variants[r.to].name},
          {"value", r.step.value},
          {"ci95", interval_json(r.step.ci95)},
          {"verdict", name_of(r.judgement.verdict)},
          {"reason", r.judgement.reason},
          {"collectives", or_null(r.collectives)},
          {"exposed", or_null(r.exposed)},
          {"predicted", or_null(r.predicted)},
          {"bounds", bounds_json(r.bounds)}};
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

AbComparison from_json(const Json& j) {
  AbComparison c;
  c.version = j.at("version").get<std::string>();
  c.job = j.at("job").get<std::string>();
  c.started_utc = j.at("started_utc").get<std::string>();
  c.argv = j.at("argv").get<std::vector<std::string>>();
  c.common = settings_from(j.at("common"));
  c.seed = j.at("seed").get<std::uint64_t>();
  c.margin = j.at("margin").get<double>();
  c.processes = j.at("processes").get<int>();
  if (!j.at("interrupted").is_null()) c.interrupted = j.at("interrupted").get<std::string>();
  c.notes = j.at("notes").get<std::vector<std::string>>();
  for (const Json& v : j.at("variants"))
    c.variants.push_back({v.at("name").get<std::string>(), settings_from(v.at("set"))});
  for (const Json& run : j.at("runs")) {
    c.runs.push_back(ab_run_from(run));
    if (c.runs.back().variant >= c.variants.size()) throw Error("a run is of no variant");
  }
  return c;
}

}  // namespace

std::string ab_json(const AbComparison& c, const AbSummary& s) {
  Json variants = Json::array(), ratios = Json::array(), runs = Json::array();
  for (std::size_t i = 0; i < c.variants.size(); ++i)
    variants.push_back(variant_json(c.variants[i], s.variants[i]));
  for (const RatioSummary& r : s.ratios) ratios.push_back(ratio_json(c, r));
  for (const AbRun& run : c.runs) {
    Json json{{"name", c.variants[run.variant].name}};
    json.update(to_json(run));
    runs.push_back(std::move(json));
  }
  return dump({{"schema", kSchema},
               {"version", c.version},
               {"argv", c.argv},
               {"job", c.job},
               {"started_utc", c.started_utc},
               {"common", settings_json(c.common)},
               {"processes", c.processes},
               {"seed", c.seed},
               {"margin", c.margin},
               {"blocks", s.blocks},
               {"deterministic", s.deterministic},
               {"faithful", s.faithful},
               {"reason", s.unfaithful},
               {"variants", std::move(variants)},
               {"ratios", std::move(ratios)},
               {"bounds", bounds_json(s.ratios.empty() ? LinkBounds{} : s.ratios.front().bounds)},
               {"runs", std::move(runs)},
               {"notes", c.notes},
               {"interrupted", c.interrupted.empty() ? Json(nullptr) : Json(c.interrupted)}});
}

std::string ab_csv(const AbComparison& c) {
  // The same keys as the JSON's runs have.
  std::string text;
  for (const AbRun& run : c.runs) {
    Json json = to_json(run);
    json["variant"] = c.variants[run.variant].name;
    std::string keys, row;
    for (const auto& [key, value] : json.items()) {
      keys += (keys.empty() ? "" : ",") + key;
      if (&value != &json.front()) row += ",";
      if (value.is_string())
        row += quoted(value.get<std::string>());
      else if (!value.is_null())
        row += value.dump();
    }
    if (text.empty()) text = keys + "\n";
    text += row + "\n";
  }
  return text;
}

AbComparison read_ab_comparison(const std::string& file) {
  const std::string text =
      read_input(file, "give a folder that 'compare JOB --bundle' wrote", std::uint64_t{1} << 30);
  try {
    const Json json = Json::parse(text);
    if (json.at("schema") != kSchema) throw Error(std::string("its schema is not ") + kSchema);
    return from_json(json);
  } catch (const std::exception& error) {
    throw Error(file + ": not what 'compare JOB --json' or '--bundle' writes: " + error.what());
  }
}

}  // namespace ghostrank
