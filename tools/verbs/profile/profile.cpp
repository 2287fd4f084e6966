// ghostrank profile: shows a model, validates files, derives a new model from a known one.
#include <array>
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "profiles/device/compute.h"
#include "profiles/device/device.h"
#include "profiles/error.h"
#include "profiles/load/config.h"
#include "profiles/load/keys/tables.h"
#include "profiles/load/load.h"
#include "profiles/load/locate.h"
#include "profiles/load/program_file.h"
#include "profiles/model/model.h"
#include "profiles/planners/plan.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/workload/workload_check.h"
#include "tools/report/files/output_files.h"
#include "tools/report/profile_report.h"
#include "tools/text/humane.h"
#include "tools/verbs.h"
#include "tools/verbs/profile/capture.h"
#include "tools/verbs/profile/edit.h"
#include "tools/verbs/profile/export.h"
#include "tools/verbs/profile/import.h"

namespace ghostrank {
namespace {

YamlValue named(const std::string& text) {
  YamlValue name;
  name.kind = YamlValue::Kind::scalar;
  name.text = text;
  name.mark.source = std::make_shared<Source>(Source{"profile", "argument", false});
  return name;
}

// "experts.count=8" as a mapping inside a mapping.
YamlValue override_of(const std::string& text) {
  const auto source = std::make_shared<Source>(Source{"-s " + quote(text), "-s", false});
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail({source, 1, 1}, "no value; write -s key=value, as in -s layers=24");
  YamlValue value = parse_yaml(text.substr(equals + 1), source);
  std::string path = text.substr(0, equals);
  for (;;) {
    const auto dot = path.rfind('.');
    value.key = dot == std::string::npos ? path : path.substr(dot + 1);
    value.key_mark = {source, 1, 1};
    YamlValue map;
    map.kind = YamlValue::Kind::map;
    map.mark = {source, 1, 1};
    map.children.push_back(std::move(value));
    value = std::move(map);
    if (dot == std::string::npos) return value;
    path.resize(dot);
  }
}

// The description of the model called `name`, with keys replaced.
YamlValue described_model(const std::string& name, const std::vector<std::string>& overrides) {
  if (overrides.empty()) return resolve_profile(named(name), kModelProfile, "");
  YamlValue changed = with_base(named(name));
  for (const std::string& text : overrides) merge_into(changed, override_of(text));
  return resolve_profile(changed, kModelProfile, "");
}

// Returns the model named `name`, or the model that the job of that name trains.
std::shared_ptr<const Model> shown_model(const std::string& name,
                                         const std::vector<std::string>& overrides) {
  if (!names_job(name))
    return std::make_shared<const Model>(make_model(described_model(name, overrides)));
  const LoadedJob job = load_job(name, overrides);
  if (!job.spec.jobs.empty())
    throw Error(job.spec.source_of("jobs") +
                ": jobs: each has a model of its own; give the file of one of them");
  if (!job.spec.model)
    throw Error(job.spec.file + ": the job has no model: it plays a program or a trace");
  return job.spec.model;
}

int show(const Argv& argv) {
  std::string name, json;
  std::vector<std::string> overrides;
  CLI::App app("Draw what a model is made of.", "ghostrank profile show");
  app.add_option("model", name,
                 "a name in profiles/models, a path, or a job, whose model is shown; - is a job on "
                 "stdin")
      ->required()
      ->type_name("MODEL|JOB");
  app.add_option("-s,--set", overrides,
                 "replace a key: -s layers=24, of a job: -s model.layers=24; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--json", json, "the same facts as JSON; - is stdout")->type_name("FILE|-");
  if (!parse(app, argv)) return 0;
  const auto model = shown_model(name, overrides);
  if (!json.empty()) write_whole(json, model_json(*model));
  if (json != "-") std::fputs(model_text(*model, paint_for(STDOUT_FILENO)).c_str(), stdout);
  return 0;
}

// Describes a file that has passed every check.
std::string checked(const std::string& file) {
  // A path, not a profile's name.
  const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
  const YamlValue root = path.ends_with(".csv") ? YamlValue{} : parse_yaml_file(path);
  const YamlValue* schema = root.find("schema");
  const YamlValue* program = root.find("roles") ? &root : root.find("program");
  if (!schema && program && program->is_map()) {
    const Workload workload = read_program(*program);
    check_workload(workload, path);
    return "programs of " + humane_count(workload.ranks, "rank") + ", " +
           humane_count(static_cast<double>(workload.roles.size()), "role");
  }
  const std::string kind = schema ? schema->text : std::string(kModelProfile.schema);
  if (kind == kModelProfile.schema) {
    const Model model = make_model(resolve_profile(named(path), kModelProfile, ""));
    return "model " + model.name + ", " +
           humane_count(static_cast<double>(model.tensors()), "tensor") + ", " +
           humane_count(static_cast<double>(model.parameters()), "parameter");
  }
  if (kind == kDeviceProfile.schema)
    return "device " + make_device(resolve_profile(named(path), kDeviceProfile, "")).name;
  if (kind == kClusterProfile.schema) {
    const LoadedJob job = load_cluster_job("cluster: {base: '" + path + "'}", {});
    return "cluster of " + humane_count(job.spec.cluster.gpus_per_node, "GPU") + " and " +
           humane_count(job.spec.cluster.nics_per_node, "NIC") + " per node";
  }
  if (schema && kind != kJobSchema && kind != kResultSchema)
    fail(schema->mark,
         "a file of schema " + quote(kind) +
             " is none that is checked here; known: " + std::string(kModelProfile.schema) + ", " +
             std::string(kDeviceProfile.schema) + ", " + std::string(kClusterProfile.schema) +
             ", " + std::string(kJobSchema) + " and " + std::string(kResultSchema));
  const LoadedJob job = load_job(path, {});
  const Workload workload = plan_workload(job.spec);
  return "job of " + humane_count(workload.ranks - workload.servers, "rank") + ", " +
         humane_count(static_cast<double>(workload.roles.size()), "role");
}

int validate(const Argv& argv) {
  std::vector<std::string> files;
  CLI::App app("Check models, devices, clusters, programs and jobs.", "ghostrank profile validate");
  app.add_option("files", files,
                 "files that say by `schema` what they are; without it, programs or a model")
      ->required()
      ->type_name("FILE...");
  if (!parse(app, argv)) return 0;
  int status = 0;
  for (const std::string& file : files) {
    try {
      std::printf("%s: %s\n", file.c_str(), checked(file).c_str());
    } catch (const Error& error) {  // check the other files, too
      std::fflush(stdout);
      std::fprintf(stderr, "ghostrank: %s\n", error.what());
      status = error.exit_code();
    }
  }
  return status;
}

YamlValue text_child(const char* key, const std::string& text, bool quoted = false) {
  YamlValue value;
  value.kind = YamlValue::Kind::scalar;
  value.key = key;
  value.text = text;
  value.quoted = quoted;
  return value;
}

// The layers of a model one by one, with their times on a device, and its buffers: the form for
// measured times.
YamlValue layers_of(const std::shared_ptr<const Model>& model, const DeviceProfile& device,
                    int micro_batch) {
  JobSpec spec;
  spec.model = model;
  spec.device = device;
  spec.cluster.nodes = spec.cluster.gpus_per_node = 1;  // a framework adds work for more
  spec.precision.parameters = DataType::bfloat16;
  spec.parallel.micro_batch = micro_batch;
  spec.parallel.foreach_optimizer = true;  // PyTorch's default
  const StepTimes times = step_times(spec);
  const auto micros = [](Picoseconds time) {
    return significant(static_cast<double>(time) / static_cast<double>(kPicosPerMicro), 9);
  };
  YamlValue out;
  out.kind = YamlValue::Kind::map;
  out.children = {text_child("kind", "layers"), text_child("name", model->name),
                  text_child("dtype", "float32")};
  YamlValue list;
  list.kind = YamlValue::Kind::list;
  list.key = "layers";
  for (std::size_t i = 0; i < model->layers.size(); ++i) {
    YamlValue layer, numels;
    layer.kind = YamlValue::Kind::map;
    numels.kind = YamlValue::Kind::list;
    numels.key = "parameters";
    for (const ParameterTensor& tensor : model->layers[i].parameters)
      numels.children.push_back(text_child("", std::to_string(tensor.numel)));
    layer.children = {text_child("name", model->layers[i].name), numels,
                      text_child("forward_us", micros(times.layers[i].forward)),
                      text_child("backward_us", micros(times.layers[i].backward))};
    list.children.push_back(std::move(layer));
  }
  out.children.push_back(std::move(list));
  out.children.push_back(text_child("optimizer_us", micros(times.optimizer)));
  const auto buffers = [&](const char* key, std::uint64_t elements) {
    if (elements > 0) out.children.push_back(text_child(key, std::to_string(elements)));
  };
  buffers("float_buffers", model->running_statistics);
  buffers("integer_buffers", model->batch_counters);
  return out;
}

int generate(const Argv& argv) {
  std::string base, out = "-", device;
  std::vector<std::string> overrides;
  int micro_batch = 1;
  CLI::App app("Write a model from a known one.", "ghostrank profile generate");
  app.add_option("model", base, "a name in profiles/models, or a path")->required();
  app.add_option("-s,--set", overrides, "replace a key: -s layers=24; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--device", device,
                 "list the layers one by one, with the times that this device would take in bf16");
  app.add_option("--micro-batch", micro_batch, "samples per micro-batch for those times")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  app.add_option("-o", out, "where to; - is stdout")->type_name("FILE|-")->capture_default_str();
  app.footer(
      "Examples:\n"
      "  ghostrank profile generate gpt3-175b -s name=small -s layers=4 -o small.yaml\n"
      "  ghostrank profile generate resnet50 --device a100-sxm-80gb --micro-batch 64 -o r50.yaml");
  if (!parse(app, argv)) return 0;
  if (device.empty() && app.count("--micro-batch") > 0)
    throw Error("--micro-batch is of the times on --device; add that, or leave it out");
  YamlValue description = described_model(base, overrides);
  const auto model = std::make_shared<const Model>(make_model(description));
  if (!device.empty()) {
    if (model->measured) throw Error("the layers of " + base + " have times; leave out --device");
    description = layers_of(model, make_device(resolve_profile(named(device), kDeviceProfile, "")),
                            micro_batch);
    make_model(description);
  }
  write_whole(out, "schema: " + std::string(kModelProfile.schema) + "\n" + yaml_text(description));
  return 0;
}

}  // namespace

std::span<const Verb> profile_verbs() {
  static constexpr std::array kVerbs{
      Verb{"show", "draw what a model is made of", show},
      Verb{"validate", "check models, devices, clusters, programs and jobs", validate},
      Verb{"generate", "write a model from a known one", generate},
      Verb{"import", "read a trace of a real run, write it as a profile", profile_import},
      Verb{"capture", "run a training script and write what it did as a profile", profile_capture},
      Verb{"check", "compare a captured profile with the run that it comes from", profile_check},
      Verb{"rescale", "the same run with more ranks or another network", profile_rescale},
      Verb{"anonymise", "a profile without names, to share", profile_anonymise},
      Verb{"export", "write programs as another project's traces", profile_export},
  };
  return kVerbs;
}

int verb_profile(const Argv& argv) {
  return play_verb_of(profile_verbs(), argv, "Models and other profiles.");
}

}  // namespace ghostrank
