#include "collectives/schemes/keyed/key_schemes.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "collectives/schemes/keyed/keyed.h"

namespace ghostrank {
namespace {

// Bytes of a ps-lite message besides its data: ports, keys and lengths. Assumed.
constexpr std::uint64_t kMetaBytes = 64;

std::uint32_t key_of(std::uint32_t tensor, std::size_t part) {
  return tensor << 16 | static_cast<std::uint32_t>(part % kMostParts);
}

class ParameterServer final : public KeyedEnds {
 public:
  ParameterServer(int size, const Communicator& comm)
      : KeyedEnds(size, comm, comm.at_servers.places,
                  {.answer = Answer::when_summed, .header_bytes = kMetaBytes}) {
    cut_named();
  }

 private:
  KeyPieces cut(std::uint32_t tensor, std::uint64_t elements, std::uint32_t) const override {
    if (elements == 0) return {};
    const std::uint64_t all = servers().places;
    if (elements < servers().big_array)
      return {{0, elements, key_of(tensor, 0), static_cast<int>(tensor * 9973ULL % all)}};
    KeyPieces pieces;
    for (std::uint64_t s = 0; s < all; ++s) {
      const std::uint64_t begin = elements * s / all, end = elements * (s + 1) / all;
      if (end > begin)
        pieces.push_back({begin, end - begin, key_of(tensor, pieces.size()), static_cast<int>(s)});
    }
    return pieces;
  }
};

class BytePs final : public KeyedEnds {
 public:
  BytePs(int size, const Communicator& comm)
      : KeyedEnds(size, comm, comm.at_servers.places,
                  {.answer = Answer::at_once,
                   .schedules = comm.at_servers.schedules,
                   .credit_bytes = comm.at_servers.credit_bytes,
                   .header_bytes = kMetaBytes,
                   .waits = comm.at_servers.waits,
                   .timeout_ps = comm.at_servers.timeout_ps,
                   .elastic = comm.at_servers.elastic}) {
    for (const auto& node : nodes()) local_ = std::max(local_, static_cast<int>(node.size()));
    const AtServers& s = servers();
    if (s.bound)
      shares_ = best_split(s.places, s.beside);
    else
      server_of_key(s.hash, 0, s.places, s.beside);  // refuses what it cannot serve
    if (s.bound && !s.tensors.empty()) cut_all_exactly();
    if (!s.bound) cut_named();
  }

 private:
  std::uint64_t most_elements(std::uint32_t element_bytes) const {
    return byteps_partition(servers().partition_bytes, local_) / element_bytes;
  }

  // One split over all tensors, so that its sums are exact for the model.
  void cut_all_exactly() {
    std::uint64_t total = 0;
    for (const AtServers::Tensor& tensor : named_tensors()) total += tensor.elements;
    ExactSplit split(shares_, total);
    std::vector<KeyPieces> all;
    for (const AtServers::Tensor& tensor : named_tensors())
      all.push_back(cut_by(split, static_cast<std::uint32_t>(all.size()), tensor.elements,
                           tensor.element_bytes));
    set_named(std::move(all));
  }

  KeyPieces cut_by(ExactSplit& split, std::uint32_t tensor, std::uint64_t elements,
                   std::uint32_t element_bytes) const {
    KeyPieces pieces;
    std::uint64_t first = 0;
    for (const std::uint64_t part : equal_parts(elements, most_elements(element_bytes)))
      for (const ExactSplit::Part& piece : split.next(part)) {
        pieces.push_back({first, piece.elements, key_of(tensor, pieces.size()), piece.bin});
        first += piece.elements;
      }
    return pieces;
  }

  KeyPieces cut(std::uint32_t tensor, std::uint64_t elements,
                std::uint32_t element_bytes) const override {
    const AtServers& s = servers();
    if (s.bound) {
      ExactSplit split(shares_, elements);
      return cut_by(split, tensor, elements, element_bytes);
    }
    KeyPieces pieces;
    std::uint64_t first = 0;
    for (const std::uint64_t part : equal_parts(elements, most_elements(element_bytes))) {
      const std::uint32_t key = key_of(tensor, pieces.size());
      pieces.push_back({first, part, key, server_of_key(s.hash, key, s.places, s.beside)});
      first += part;
    }
    return pieces;
  }

  int local_ = 1;
  std::vector<double> shares_;
};

class Phub final : public KeyedEnds {
 public:
  Phub(int size, const Communicator& comm, int racks)
      : KeyedEnds(size, comm, comm.at_servers.places * comm.at_servers.nics,
                  {.answer = Answer::result,
                   .optimises = true,
                   .racks = racks,
                   .rack_nics = racks > 1 ? comm.at_servers.rack_nics : 0}) {
    if (rules().rack_nics >= servers().nics && racks > 1)
      throw std::invalid_argument(
          "of the " + std::to_string(servers().nics) + " NICs of each server, " +
          std::to_string(rules().rack_nics) +
          " are for other racks, which leaves none to its own nodes; use fewer");
    assign();
    cut_named();
  }

  int core_of(std::uint32_t key) const override { return assigned(core_of_, key, cores()); }
  int owner_of(std::uint32_t key) const override { return assigned(helper_of_, key, owners()); }

  // Two buffers for every sender.
  std::uint64_t bytes_held(std::uint64_t bytes, std::size_t pushers) const override {
    return bytes * 2 * pushers;
  }

 private:
  std::uint64_t most_elements(std::uint32_t element_bytes) const {
    return std::max<std::uint64_t>(1, servers().chunk_bytes / element_bytes);
  }
  // Helpers that sum, on the first NICs of every machine.
  int owners() const { return servers().places * (servers().nics - rules().rack_nics); }

  // By tensor and chunk. Chunks of unnamed tensors take turns.
  using Assignment = std::vector<std::vector<int>>;
  static int assigned(const Assignment& bin_of, std::uint32_t key, int bins) {
    const std::uint32_t tensor = key / kMostParts, part = key % kMostParts;
    return tensor < bin_of.size() && part < bin_of[tensor].size() ? bin_of[tensor][part]
                                                                  : static_cast<int>(part % bins);
  }

  // Longest first: chunks to NICs, and the chunks of each machine to its cores. The box of a rack
  // sums the chunks of all owners, each on the same core in every box.
  void assign() {
    std::vector<std::uint64_t> sizes;
    std::vector<std::vector<std::size_t>> number;  // by tensor, then by chunk
    for (const AtServers::Tensor& tensor : named_tensors()) {
      std::vector<std::size_t>& mine = number.emplace_back();
      for (const std::uint64_t n :
           equal_parts(tensor.elements, most_elements(tensor.element_bytes))) {
        mine.push_back(sizes.size());
        sizes.push_back(n * tensor.element_bytes);
      }
    }
    const std::vector<int> helper = longest_first(sizes, owners());
    std::vector<int> core(sizes.size());
    const int machines = racks() > 1 ? 1 : servers().places;
    for (int machine = 0; machine < machines; ++machine) {
      std::vector<std::size_t> here;
      std::vector<std::uint64_t> sizes_here;
      for (std::size_t i = 0; i < sizes.size(); ++i)
        if (helper[i] % machines == machine) {
          here.push_back(i);
          sizes_here.push_back(sizes[i]);
        }
      const std::vector<int> cores_here = longest_first(sizes_here, cores());
      for (std::size_t i = 0; i < here.size(); ++i) core[here[i]] = cores_here[i];
    }
    for (const std::vector<std::size_t>& mine : number) {
      std::vector<int>& helpers = helper_of_.emplace_back();
      std::vector<int>& cores_of = core_of_.emplace_back();
      for (const std::size_t i : mine) {
        helpers.push_back(helper[i]);
        cores_of.push_back(core[i]);
      }
    }
  }

  KeyPieces cut(std::uint32_t tensor, std::uint64_t elements,
                std::uint32_t element_bytes) const override {
    KeyPieces pieces;
    std::uint64_t first = 0;
    for (const std::uint64_t part : equal_parts(elements, most_elements(element_bytes))) {
      const std::uint32_t key = key_of(tensor, pieces.size());
      pieces.push_back({first, part, key, owner_of(key)});
      first += part;
    }
    return pieces;
  }

  Assignment helper_of_, core_of_;
};

}  // namespace

std::unique_ptr<Ends> parameter_server_ends(int ranks, const Communicator& comm) {
  return std::make_unique<ParameterServer>(ranks, comm);
}
std::unique_ptr<Ends> byteps_ends(int ranks, const Communicator& comm) {
  return std::make_unique<BytePs>(ranks, comm);
}
std::unique_ptr<Ends> phub_ends(int ranks, const Communicator& comm) {
  return std::make_unique<Phub>(ranks, comm, 1);
}
std::unique_ptr<Ends> phub_racks_ends(int ranks, const Communicator& comm) {
  return std::make_unique<Phub>(ranks, comm, comm.at_servers.places);
}

}  // namespace ghostrank
