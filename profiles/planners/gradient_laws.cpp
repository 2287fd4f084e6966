#include "profiles/planners/gradient_laws.h"

#include <algorithm>
#include <fnmatch.h>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/input/csv.h"
#include "profiles/input/keys.h"
#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"
#include "profiles/model/model.h"

namespace ghostrank {
namespace {

constexpr double kLeastScale = 1e-30, kMostScale = 1e30;
constexpr std::string_view kByNumber = " by number";

using Histogram = std::vector<GradientLaw::Bin>;

// What a file of histograms holds.
struct Histograms {
  std::string path;
  std::vector<std::string> tensors;  // in the order of the file; empty: one for all tensors
  std::vector<Histogram> histograms;
};

Histograms read_histograms(const std::string& file, const std::string& folder,
                           const std::string& where) {
  const std::optional<NamedText> named = named_text(file, "tensors.distribution", folder);
  if (!named) throw Error(where + ": cannot read " + file + "; name a CSV file");
  const CsvTable table = parse_csv(named->text, named->name, "magnitude,count");
  const auto magnitude = table.column("magnitude"), count = table.column("count"),
             tensor = table.column("tensor");
  if (!magnitude || !count)
    fail(table.head.mark,
         "the head has no magnitude and count; write them, as `ghostrank profile capture "
         "--gradients` does");
  Histograms out{named->name, {}, {}};
  if (!tensor) out.histograms.emplace_back();
  std::map<std::string, std::size_t> known;
  for (const CsvRow& row : table.rows) {
    const bool whole = row.fields.size() == table.head.fields.size();
    const auto up_to = whole ? parse_number(row.fields[*magnitude]) : std::nullopt;
    const auto elements = whole ? parse_number(row.fields[*count]) : std::nullopt;
    if (!up_to || !elements)
      fail(row.mark, "this row is no bin; write " + join(table.head.fields, ",") +
                         ", as 0.001,250" + (tensor ? ",fc.weight" : ""));
    std::size_t at = 0;
    if (tensor) {
      at = known.try_emplace(row.fields[*tensor], out.tensors.size()).first->second;
      if (at == out.tensors.size()) {
        out.tensors.push_back(row.fields[*tensor]);
        out.histograms.emplace_back();
      }
    }
    out.histograms[at].push_back({*up_to, *elements});
  }
  return out;
}

// A law as a text names it, its histograms not yet read.
struct NamedLaw {
  GradientLaw law;
  std::string file;  // of histograms
  bool by_number = false;
};

NamedLaw law_named(const std::string& text, double scale, const std::string& where) {
  const std::size_t space = text.find(' ');
  const std::string name = text.substr(0, space);
  std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
  NamedLaw out;
  GradientLaw& law = out.law;
  law.scale = scale;
  if (name == "gaussian") law.kind = GradientLaw::Kind::gaussian;
  if (name == "gamma") law.kind = GradientLaw::Kind::gamma;
  if (name == "pareto") law.kind = GradientLaw::Kind::pareto;
  if (name == "measured") law.kind = GradientLaw::Kind::measured;
  const std::optional<double> shape = parse_number(rest);
  if (law.has_shape() && shape) law.shape = *shape;
  if (name == "measured") {
    out.by_number = rest.ends_with(kByNumber);
    out.file = out.by_number ? rest.substr(0, rest.size() - kByNumber.size()) : rest;
  }
  const bool known = law.has_shape()                           ? shape.has_value()
                     : name == "measured"                      ? !out.file.empty()
                     : name == "laplace" || name == "gaussian" ? rest.empty()
                                                               : false;
  if (!known)
    throw Error(where + " is " + quote(text) +
                "; write laplace, gaussian, gamma SHAPE, pareto SHAPE or measured FILE");
  return out;
}

Histograms histograms_of(const NamedLaw& named, const std::string& folder,
                         const std::string& where) {
  if (named.file.empty()) return {};
  return read_histograms(named.file, folder, where);
}

void check(const GradientLaw& law, const std::string& where) {
  if (const std::string wrong = law.why_wrong(); !wrong.empty()) throw Error(where + ": " + wrong);
}

// A number of a rule or a drift.
double number_in(const YamlValue& value, double least, double most) {
  const auto number = value.is_scalar() ? parse_number(value.text) : std::nullopt;
  if (!number || *number < least || *number > most)
    fail(value.mark, value.key + " is " + description(value) + "; write a number from " +
                         number_text(least) + " to " + number_text(most));
  return *number;
}

GradientDrift read_drift(const YamlValue& value) {
  if (!value.is_map())
    fail(value.mark, "a drift is " + description(value) + "; write {scale: 0.98, until: 100}");
  GradientDrift drift;
  for (const YamlValue& entry : value.children) {
    if (entry.key == "scale")
      drift.scale = number_in(entry, 0.01, 100);
    else if (entry.key == "shape")
      drift.shape = number_in(entry, 0.01, 100);
    else if (entry.key == "until")
      drift.until = static_cast<std::uint32_t>(number_in(entry, 0, 1e9));
    else
      fail(entry.key_mark,
           "unknown key " + quote(entry.key) + " of a drift; known here: scale, shape, until");
  }
  return drift;
}

struct Rule {
  std::string pattern = "*", where;
  Mark mark;
  NamedLaw named;
  Histograms measured;
  std::optional<std::uint32_t> law;  // the one of all its tensors, once known
  bool used = false;

  bool by_tensor() const { return !measured.tensors.empty(); }
};

// The job's rules; a law alone is one that names all tensors.
class Rules {
 public:
  Rules(const Settings& in, const std::string& folder) : in_(in), folder_(folder) {
    const Setting& said = in.at("tensors.distribution");
    const Setting& drift = in.at("tensors.drift");
    if (drift.raw && drift.raw->kind != YamlValue::Kind::null) drift_ = read_drift(*drift.raw);
    const YamlValue* list = said.raw && !said.raw->is_scalar() ? said.raw : nullptr;
    if (!list) {
      add("*", said.text, in.number("tensors.scale"), drift_, said.mark,
          location(said.mark) + ": tensors.distribution");
    } else {
      if (!list->is_list() || list->children.empty())
        fail(said.mark, "tensors.distribution is " + description(*list) +
                            "; write a law, or a list of rules such as {tensors: '*.bias', law: "
                            "gaussian}");
      for (const YamlValue& rule : list->children) read(rule);
    }
    if (drift_.shape != 1 && std::none_of(rules_.begin(), rules_.end(), [](const Rule& rule) {
          return rule.named.law.has_shape();
        }))
      fail(drift.mark,
           "tensors.drift: no law of this job has a shape; leave shape out, or use "
           "gamma or pareto");
  }

  std::vector<Rule>& all() { return rules_; }

 private:
  void read(const YamlValue& rule) {
    if (!rule.is_map())
      fail(rule.mark, "a rule of tensors.distribution is " + description(rule) +
                          "; write {tensors: '*.bias', law: gaussian}");
    std::string pattern = "*";
    const YamlValue* law = nullptr;
    double scale = in_.number("tensors.scale");
    GradientDrift drift = drift_;
    bool own_shape = false;
    for (const YamlValue& entry : rule.children) {
      if (entry.key == "tensors" && entry.is_scalar()) {
        pattern = entry.text;
      } else if (entry.key == "law" && entry.is_scalar()) {
        law = &entry;
      } else if (entry.key == "scale") {
        scale = number_in(entry, kLeastScale, kMostScale);
      } else if (entry.key == "drift") {
        drift = read_drift(entry);
        own_shape = drift.shape != 1;
      } else {
        fail(entry.key_mark,
             quote(entry.key) +
                 " has no place here, or has another form; a rule of "
                 "tensors.distribution has tensors (a pattern), law, scale and drift");
      }
    }
    if (!law) fail(rule.mark, "a rule of tensors.distribution needs a law, as in {law: laplace}");
    const std::string where = location(law->mark) + ": tensors.distribution";
    add(pattern, law->text, scale, drift, rule.mark, where);
    if (own_shape && !rules_.back().named.law.has_shape())
      fail(rule.mark, law->text + " has no shape that could drift; only gamma and pareto have one");
  }

  void add(const std::string& pattern, const std::string& text, double scale,
           const GradientDrift& drift, const Mark& mark, const std::string& where) {
    Rule rule;
    rule.pattern = pattern;
    rule.where = where;
    rule.mark = mark;
    rule.named = law_named(text, scale, where);
    rule.measured = histograms_of(rule.named, folder_, where);
    GradientLaw& law = rule.named.law;
    law.drift = drift;
    if (!law.has_shape()) law.drift.shape = 1;
    if (!rule.by_tensor()) {
      if (rule.named.by_number)
        throw Error(where + ": " + rule.measured.path +
                    " has one histogram for all tensors; leave out 'by number'");
      if (!rule.measured.histograms.empty()) law.bins = rule.measured.histograms.front();
      check(law, where);
    }
    rules_.push_back(std::move(rule));
  }

  const Settings& in_;
  const std::string folder_;
  GradientDrift drift_;
  std::vector<Rule> rules_;
};

// Gives the tensors of a model their laws.
class LawsByTensor {
 public:
  LawsByTensor(const Model& model, std::vector<Rule>& rules) : model_(model), rules_(rules) {
    laws_.laws.clear();
  }

  GradientLaws give() {
    std::size_t number = model_.tensors();
    for (auto layer = model_.layers.rbegin(); layer != model_.layers.rend(); ++layer)
      for (auto tensor = layer->parameters.rbegin(); tensor != layer->parameters.rend(); ++tensor) {
        const std::string name = layer->name + "." + tensor->name;
        laws_.parts.push_back({tensor->numel, law_of(name, --number)});
      }
    for (const Rule& rule : rules_)
      if (!rule.used)
        fail(rule.mark, "this rule gives no tensor of " + quote(model_.name) +
                            " a law: none is called " + quote(rule.pattern) +
                            " that an earlier rule does not name; tensors are called as " +
                            quote(example()));
    return std::move(laws_);
  }

 private:
  std::string example() const {
    for (const Layer& layer : model_.layers)
      if (!layer.parameters.empty()) return layer.name + "." + layer.parameters.front().name;
    return "";
  }

  std::uint32_t add(const GradientLaw& law, const std::string& where) {
    check(law, where);
    laws_.laws.push_back(law);
    return static_cast<std::uint32_t>(laws_.laws.size() - 1);
  }

  std::uint32_t law_of(const std::string& name, std::size_t number) {
    const auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const Rule& one) {
      return fnmatch(one.pattern.c_str(), name.c_str(), 0) == 0;
    });
    if (rule == rules_.end())
      fail(rules_.back().mark, "no rule of tensors.distribution names the tensor " + quote(name) +
                                   "; end with one for all others, as in {law: laplace}");
    rule->used = true;
    if (rule->by_tensor()) return measured_law(*rule, name, number);
    if (!rule->law) rule->law = add(rule->named.law, rule->where);
    return *rule->law;
  }

  std::uint32_t measured_law(const Rule& rule, const std::string& name, std::size_t number) {
    const std::vector<std::string>& known = rule.measured.tensors;
    if (rule.named.by_number && known.size() != model_.tensors())
      throw Error(rule.where + ": " + rule.measured.path + " has histograms of " +
                  std::to_string(known.size()) + " tensors and " + quote(model_.name) + " has " +
                  std::to_string(model_.tensors()) +
                  " of them; they go by number only where they are as many");
    if (!rule.named.by_number) {
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end()) {
        const std::string near = nearest(name, known);
        throw Error(rule.where + ": " + rule.measured.path + " has no histogram of the tensor " +
                    quote(name) + "; " +
                    (near.empty() ? "it has those of " + quote(known.front()) + " and " +
                                        std::to_string(known.size() - 1) +
                                        " others, which go by the order in 'measured FILE by "
                                        "number'"
                                  : "did you mean " + quote(near) + "?"));
      }
      number = static_cast<std::size_t>(found - known.begin());
    }
    GradientLaw law = rule.named.law;
    law.bins = rule.measured.histograms[number];
    return add(law, rule.where + ": " + rule.measured.path + ": " + known[number]);
  }

  const Model& model_;
  std::vector<Rule>& rules_;
  GradientLaws laws_;
};

// Stands for the last iteration of a run whose number of them is open.
constexpr std::int64_t kFarIteration = 1'000'000'000;

// Refuses a drift with which a law is invalid in the job's last iteration.
void check_drift(const GradientLaws& laws, const Settings& in) {
  const bool open = in.given("run.duration") || in.number("run.until.ci95_percent") > 0;
  const std::int64_t last =
      open ? kFarIteration : in.integer("run.warmup") + in.integer("run.iterations") - 1;
  for (const GradientLaw& law : laws.laws) {
    if (!law.drift.moves()) continue;
    const GradientLaw then = law.in(static_cast<std::uint32_t>(last));
    const bool measured = law.kind == GradientLaw::Kind::measured;
    const double most = measured ? then.bins.back().up_to : then.scale;
    std::string wrong = then.why_wrong();
    if (wrong.empty() && !(most >= kLeastScale && most <= kMostScale))
      wrong = "magnitudes are from 1e-30 to 1e30";
    if (wrong.empty()) continue;
    throw Error(
        location(in.at(in.given("tensors.drift") ? "tensors.drift" : "tensors.distribution").mark) +
        ": a law drifts too far: in iteration " + std::to_string(last) + " its " +
        (then.has_shape() ? "shape is " + number_text(then.shape) + " and its " : "") + "scale " +
        number_text(most) + ", but " + wrong + "; let it end with until, or drift less");
  }
}

}  // namespace

std::string law_with_file(const std::string& text, const std::string& folder) {
  constexpr std::string_view kMeasured = "measured ";
  if (!text.starts_with(kMeasured)) return text;
  const std::size_t end = text.ends_with(kByNumber) ? text.size() - kByNumber.size() : text.size();
  const std::string file = text.substr(kMeasured.size(), end - kMeasured.size());
  const std::optional<NamedText> named = named_text(file, "tensors.distribution", folder);
  if (!named) return text;
  return std::string(kMeasured) + named->text + (is_text(named->text) ? "" : "\n") +
         text.substr(end);
}

GradientLaw parse_gradient_law(const std::string& text, double scale, const std::string& folder,
                               const std::string& where) {
  NamedLaw named = law_named(text, scale, where);
  const Histograms measured = histograms_of(named, folder, where);
  if (!measured.tensors.empty() || named.by_number)
    throw Error(where + ": " + named.file +
                " has histograms of many tensors, of which a job with a model takes each tensor's "
                "own (tensors.distribution); name a file of one histogram");
  if (!measured.histograms.empty()) named.law.bins = measured.histograms.front();
  check(named.law, where);
  return named.law;
}

GradientLaws read_gradient_laws(const Settings& in, const Model* model, const std::string& folder) {
  Rules rules(in, folder);
  std::vector<Rule>& all = rules.all();
  GradientLaws laws;
  if (all.size() == 1 && all.front().pattern == "*" && !all.front().by_tensor())
    laws.laws = {all.front().named.law};
  else if (model)
    laws = LawsByTensor(*model, all).give();
  else
    fail(in.at("tensors.distribution").mark,
         "tensors.distribution: laws by tensor need a model, which names tensors; here is a "
         "program or a trace: give one law");
  check_drift(laws, in);
  return laws;
}

}  // namespace ghostrank
