// How long a rank computes for K-FAC: factors, their running averages, inverses, preconditioning.
//
// Products (factors, and G^-1 grad A^-1) are FLOPs over a rate, running averages are memory-bound.
// Where the rate and the time of an inverse of dimension d come from (`parallel.kfac_cost`):
//
//   device      the device's own rate; an inverse by Cholesky takes d^3 FLOPs
//   spdkfac     the device's own rate; SPD-KFAC's published model for an RTX 2080 Ti,
//               3.64 ms exp(4.77e-4 d). Its sum over ResNet-50 is more than twice what they
//               measured
//   rtx2080ti   fitted here on their measured breakdown of ResNet-50 (64 RTX 2080 Ti, 32 samples
//               each): 8.45 TFLOP/s from the time for factors, and 0.099 ms + 1.697 ms (d / 1024)^2
//               for an inverse and 0.134 ms of the host's for looking at a factor, own or not, from
//               the three times for inverses under three placements (LBP with 1,400 rows, as their
//               code had it then)
//
// Matrices are packed before a call: PyTorch gathers the upper triangle by lists of its elements'
// rows and columns (int64), which it makes anew each time, and writes both triangles back in the
// same way. Packing is memory-bound.
//
// The authors run Horovod without its cache of responses: in a cycle every rank tells rank 0 which
// tensors are ready there, and rank 0 answers which all ranks have. With `rtx2080ti` a request (a
// tensor of a rank) takes 4.8 us, and a cycle 11.3 us a rank beyond its requests; otherwise neither
// takes time. Both are fitted to the time that gradients and factors of ResNet-50 add to a step of
// D-KFAC when they are sent, and inverses to a step of MPD-KFAC.
//
// Units: picoseconds. Errors: Error(usage) as ComputeModel's. Threading: one owner.
#pragma once

#include <optional>
#include <string>

#include "profiles/device/compute.h"
#include "profiles/job/job.h"
#include "profiles/planners/kfac/factors.h"

namespace ghostrank {

class KfacCompute {
 public:
  explicit KfacCompute(const JobSpec& spec);  // `spec` must outlive it

  Picoseconds factor(const Factor& factor) const;   // with its running average
  Picoseconds inverse(const Factor& factor) const;  // by the rank that inverts it
  Picoseconds visit() const;                        // for each factor, whoever inverts it
  Picoseconds precondition(const Factor& a, const Factor& g) const;
  Picoseconds pack(const Factor& factor) const;
  Picoseconds unpack(const Factor& factor) const;
  Picoseconds requests(std::size_t tensors) const;  // of all ranks, to Horovod
  Picoseconds cycle() const;

 private:
  Picoseconds products(double flops, const std::string& what) const;
  const ComputeModel& device() const;  // made when it is first asked, because ssgd asks for none

  const JobSpec& spec_;
  KfacCost cost_;
  int ranks_;
  mutable std::optional<ComputeModel> device_;
};

}  // namespace ghostrank
