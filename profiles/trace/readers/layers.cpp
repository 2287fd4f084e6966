// SwitchML's dnn_benchmark: layers with their times, which make a model (profiles/model/model.h).
#include <filesystem>

#include "profiles/error.h"
#include "profiles/model/model.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {

Trace import_layers(const std::vector<std::string>& files, int) {
  if (files.size() != 1)
    throw Error(files[1] + ": a second table of layers; one describes the model");
  const std::string& path = files.front();
  Trace trace;
  trace.format = "dnn_benchmark";
  trace.unit = "nanoseconds of forward and backward passes; no clock";
  YamlValue description =
      read_layer_csv(read_trace_file(path), path, std::filesystem::path(path).stem().string());
  trace.used = make_model(description).layers.size();
  trace.model = std::move(description);
  return trace;
}

}  // namespace ghostrank
