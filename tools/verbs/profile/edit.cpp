// See edit.h; the changes themselves are in profiles/capture/edit.h.
#include "tools/verbs/profile/edit.h"

#include <utility>

#include <CLI/CLI.hpp>

#include "profiles/capture/edit.h"
#include "profiles/capture/scales.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/load/locate.h"
#include "profiles/load/program_file.h"
#include "profiles/model/model.h"
#include "profiles/trace/replay.h"
#include "tools/report/files/output_files.h"
#include "tools/report/profile_report.h"

namespace ghostrank {
namespace {

// A profile is a model or the programs of ranks.
bool is_model(const YamlValue& root) {
  const YamlValue* schema = root.find("schema");
  return schema && schema->text == kModelProfile.schema;
}

Workload programs_in(const YamlValue& root) {
  const YamlValue* program = root.find("program");
  if ((!program || !program->is_map()) && !root.find("roles"))
    fail(root.mark,
         "it has neither layers nor programs; give what 'profile capture', 'profile import' or "
         "'plan --programs' wrote");
  return read_program(program ? *program : root);
}

std::string model_profile(const YamlValue& root, const std::vector<std::string>& comments) {
  std::string out;
  for (const std::string& line : comments) out += "# " + line + "\n";
  return out + yaml_text(root);
}

// Fits captures at several numbers of ranks to `to.ranks`, and sets that to 0, because it is done.
YamlValue fitted(const std::vector<std::string>& files, Rescale& to,
                 std::vector<std::string>& comments) {
  if (to.ranks == 0) throw Error("several captures are fitted to a number of ranks; give --dp N");
  std::vector<YamlValue> captures;
  for (const std::string& file : files) {
    captures.push_back(parse_yaml_file(file));
    if (!is_model(captures.back()))
      fail(captures.back().mark,
           "it holds no model; several files are fitted where 'profile "
           "capture' wrote them");
  }
  return fit_scales(std::move(captures), std::exchange(to.ranks, 0), comments);
}

// The model must still load.
void check_model(const YamlValue& root) {
  YamlValue description = root;
  std::erase_if(description.children, [](const YamlValue& child) { return child.key == "schema"; });
  make_model(description);
}

}  // namespace

int profile_rescale(const Argv& argv) {
  std::vector<std::string> files;
  std::string out = "-", nic;
  int dp = 0, nodes = 0;
  std::string refused[4];
  static constexpr const char* kRefused[] = {"--tp", "--pp", "--cp", "--ep"};
  CLI::App app(
      "Rescale a profile of a real run: what is arithmetic is done, the rest refused. Captures of "
      "one script at several numbers of ranks are fitted, delay by delay.",
      "ghostrank profile rescale");
  app.add_option("profile", files, "of 'profile capture' or 'profile import'")
      ->required()
      ->type_name("FILE...");
  app.add_option("--dp", dp, "data-parallel ranks")->check(between(1, kMaxReplayRanks));
  app.add_option("--nodes", nodes, "the same, where every rank has a node of its own")
      ->check(between(1, kMaxReplayRanks));
  app.add_option("--nic", nic, "rate of the network, as 100Gbps")->type_name("RATE");
  app.add_option("-o", out, "where to; - is stdout")->type_name("FILE|-")->capture_default_str();
  for (std::size_t i = 0; i < std::size(kRefused); ++i)
    app.add_option(kRefused[i], refused[i])->group("");
  app.footer(
      "Examples:\n"
      "  ghostrank profile rescale run.profile.yaml --dp 64 -o run64.profile.yaml\n"
      "  ghostrank profile rescale run.profile.yaml --dp 8 --nic 25Gbps -o fast.profile.yaml\n"
      "  ghostrank profile rescale two.yaml four.yaml --dp 8 -o eight.yaml");
  if (!parse(app, argv)) return 0;
  for (std::size_t i = 0; i < std::size(kRefused); ++i)
    if (!refused[i].empty())
      throw Error(std::string(kRefused[i]) +
                  " splits the model: its kernels have other shapes, so their times are not "
                  "arithmetic; capture such a run, or describe the model and plan it");
  if (dp > 0 && nodes > 0 && dp != nodes)
    throw Error("--dp and --nodes differ, but every rank has a node of its own; leave one out");
  Rescale to{std::max(dp, nodes), std::nullopt};
  if (!nic.empty()) {
    to.rate_bps = parse_rate(nic);
    if (!to.rate_bps) throw Error("--nic: " + quote(nic) + " is no rate; write 100Gbps");
  }
  if (to.ranks == 0 && !to.rate_bps) throw Error("rescale to what? give --dp, --nodes or --nic");
  check_outputs({{"-o", out}});
  std::vector<std::string> comments{"Written by 'ghostrank profile rescale'."};
  YamlValue root = files.size() == 1 ? parse_yaml_file(files.front()) : fitted(files, to, comments);
  if (is_model(root)) {
    if (to.ranks > 0 || to.rate_bps) rescale_model(root, to, comments);
    check_model(root);
    write_whole(out, model_profile(root, comments));
  } else {
    const Workload from = programs_in(root);
    if (to.ranks == 0) to.ranks = from.ranks;
    const Workload scaled = rescaled_program(from, to, comments);
    write_whole(out, program_profile(scaled, comments));
  }
  return 0;
}

int profile_anonymise(const Argv& argv) {
  std::string file, out = "-";
  CLI::App app("Write a profile without names, paths and comments, so that it can be shared.",
               "ghostrank profile anonymise");
  app.add_option("profile", file, "of 'profile capture' or 'profile import'")
      ->required()
      ->type_name("FILE");
  app.add_option("-o", out, "where to; - is stdout")->type_name("FILE|-")->capture_default_str();
  app.footer("Example:\n  ghostrank profile anonymise run.profile.yaml -o shared.profile.yaml");
  if (!parse(app, argv)) return 0;
  check_outputs({{"-o", out}});
  YamlValue root = parse_yaml_file(file);
  if (is_model(root)) {
    anonymise_model(root);
    check_model(root);
    write_whole(out, model_profile(root, {}));
  } else {
    Workload program = programs_in(root);
    anonymise_program(program);
    write_whole(out, program_profile(program, {}));
  }
  return 0;
}

}  // namespace ghostrank
