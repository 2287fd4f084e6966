#include "profiles/planners/gradient_laws.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"

namespace ghostrank {
namespace {

std::vector<GradientLaw::Bin> read_histogram(const std::string& path, const std::string& where) {
  std::ifstream in(path);
  if (!in || !std::filesystem::is_regular_file(path))
    throw Error(where + ": cannot read " + path + "; name a CSV file");
  std::vector<GradientLaw::Bin> bins;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    GradientLaw::Bin bin;
    char comma = 0, more = 0;
    std::istringstream text(line);
    if (number == 1 && line.starts_with("magnitude")) continue;
    if (line.empty()) continue;
    if (!(text >> bin.up_to >> comma >> bin.count) || comma != ',' || (text >> more))
      throw Error(path + ":" + std::to_string(number) + ": " + quote(line) +
                  " is no bin; write MAGNITUDE,COUNT, as 0.001,250");
    bins.push_back(bin);
  }
  return bins;
}

}  // namespace

GradientLaw parse_gradient_law(const std::string& text, double scale, const std::string& folder,
                               const std::string& where) {
  const std::size_t space = text.find(' ');
  const std::string name = text.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
  GradientLaw law;
  law.scale = scale;
  const bool shaped = name == "gamma" || name == "pareto";
  if (name == "gaussian") law.kind = GradientLaw::Kind::gaussian;
  if (name == "gamma") law.kind = GradientLaw::Kind::gamma;
  if (name == "pareto") law.kind = GradientLaw::Kind::pareto;
  if (name == "measured") law.kind = GradientLaw::Kind::measured;
  const std::optional<double> shape = parse_number(rest);
  if (shaped && shape) law.shape = *shape;
  const bool known = shaped                                    ? shape.has_value()
                     : name == "measured"                      ? !rest.empty()
                     : name == "laplace" || name == "gaussian" ? rest.empty()
                                                               : false;
  if (!known)
    throw Error(where + " is " + quote(text) +
                "; write laplace, gaussian, gamma SHAPE, pareto SHAPE or measured FILE");
  if (name == "measured")
    law.bins = read_histogram(rest.starts_with('/') ? rest : folder + "/" + rest, where);
  const std::string wrong = law.why_wrong();
  if (!wrong.empty()) throw Error(where + ": " + wrong);
  return law;
}

}  // namespace ghostrank
