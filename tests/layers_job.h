// The text of a job that trains a few small layers.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace ghostrank::test {

struct LayersJob {
  struct Layer {
    std::string parameters;  // elements of its tensors, as YAML: "[3000, 20]"
    double forward_us = 10, backward_us = 10;
  };
  std::vector<Layer> layers;  // a, b, c, ...: at most 26
  int nodes = 1, gpus_per_node = 1;
  std::string cluster;  // more keys of the cluster: "nic: {rate: 10Gbps}"
  std::string parallel = "framework: ddp";
};

// Nodes have one NIC. Each key and each layer has a line: what a test appends to a job with one
// layer begins in line 10.
inline std::string text_of(const LayersJob& job) {
  std::ostringstream out;
  out << "schema: ghostrank/job/1\nmodel:\n  kind: layers\n  name: small\n  dtype: float32\n"
      << "  layers:\n";
  char name = 'a';
  for (const LayersJob::Layer& layer : job.layers)
    out << "    - {name: " << name++ << ", parameters: " << layer.parameters
        << ", forward_us: " << layer.forward_us << ", backward_us: " << layer.backward_us << "}\n";
  out << "cluster: {nodes: " << job.nodes << ", gpus_per_node: " << job.gpus_per_node
      << ", nics_per_node: 1" << (job.cluster.empty() ? "" : ", ") << job.cluster << "}\n"
      << "parallel: {" << job.parallel << "}\n";
  return out.str();
}

}  // namespace ghostrank::test
