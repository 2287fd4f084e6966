// Records the messages of the real Open MPI 4.1: plays every collective with every algorithm of its
// component "tuned" on the first 2, 3, ... ranks, and notes each message at the point where
// collectives hand it to the point-to-point layer. Rank 0 writes one line per call: for every rank
// the destinations and bytes of its messages, in order; runs of equal ones carry their number.
//
//   allreduce ring n=3 count=3 root=1 | 1x4*4 | 2x4*4 | 0x4*4
//
// Algorithm "fixed" is Open MPI's own choice. Elements are 4-byte integers, counts are as in
// collectives/schedule.h. An argument selects one operation by Open MPI's name. record.sh compiles
// and runs this program; tests compare its output with our schedules.
#include <cstdio>
#include <dlfcn.h>
#include <map>
#include <mpi.h>
#include <string>
#include <vector>

namespace {

void demand(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "record: %s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// ---- The point-to-point layer

static_assert(OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1,
              "the layer's table is that of 4.1");

// Indices of the send functions in Open MPI's table of functions of that layer.
constexpr int kIsendInit = 9, kIsend = 10, kSend = 11, kStart = 14;
using Isend = int (*)(const void*, std::size_t, MPI_Datatype, int, int, int, MPI_Comm,
                      MPI_Request*);
using Send = int (*)(const void*, std::size_t, MPI_Datatype, int, int, int, MPI_Comm);
using Start = int (*)(std::size_t, MPI_Request*);

Isend real_isend_init, real_isend;
Send real_send;
Start real_start;

struct Message {
  int to, bytes;
};

bool noting = false;
std::vector<int> noted;                   // destination, bytes, destination, bytes, ...
std::map<MPI_Request, Message> prepared;  // sent when the request is started

Message message(std::size_t count, MPI_Datatype type, int to) {
  int size = 0;
  MPI_Type_size(type, &size);
  return {to, static_cast<int>(count) * size};
}

void note(const Message& m) {
  if (noting) noted.insert(noted.end(), {m.to, m.bytes});
}

int noted_isend(const void* data, std::size_t count, MPI_Datatype type, int to, int tag, int mode,
                MPI_Comm comm, MPI_Request* request) {
  note(message(count, type, to));
  return real_isend(data, count, type, to, tag, mode, comm, request);
}

int noted_isend_init(const void* data, std::size_t count, MPI_Datatype type, int to, int tag,
                     int mode, MPI_Comm comm, MPI_Request* request) {
  const int status = real_isend_init(data, count, type, to, tag, mode, comm, request);
  prepared[*request] = message(count, type, to);
  return status;
}

int noted_send(const void* data, std::size_t count, MPI_Datatype type, int to, int tag, int mode,
               MPI_Comm comm) {
  note(message(count, type, to));
  return real_send(data, count, type, to, tag, mode, comm);
}

int noted_start(std::size_t count, MPI_Request* requests) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto send = prepared.find(requests[i]);
    if (send == prepared.end()) continue;  // a receive
    note(send->second);
    prepared.erase(send);  // the library starts each once
  }
  return real_start(count, requests);
}

void stand_in_between() {
  void** table = static_cast<void**>(dlsym(RTLD_DEFAULT, "mca_pml"));
  demand(table != nullptr, "this Open MPI does not show its point-to-point layer");
  real_isend_init = reinterpret_cast<Isend>(table[kIsendInit]);
  real_isend = reinterpret_cast<Isend>(table[kIsend]);
  real_send = reinterpret_cast<Send>(table[kSend]);
  real_start = reinterpret_cast<Start>(table[kStart]);
  table[kIsendInit] = reinterpret_cast<void*>(noted_isend_init);
  table[kIsend] = reinterpret_cast<void*>(noted_isend);
  table[kSend] = reinterpret_cast<void*>(noted_send);
  table[kStart] = reinterpret_cast<void*>(noted_start);
}

// Applies to communicators made after it. False where the variable can only be set at the start and
// has another value.
bool choose(const std::string& operation, int algorithm) {
  const std::string name = "coll_tuned_" + operation + "_algorithm";
  int index = 0, count = 0, value = -1;
  MPI_T_cvar_handle handle{};
  demand(MPI_T_cvar_get_index(name.c_str(), &index) == MPI_SUCCESS &&
             MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS,
         "no variable " + name);
  MPI_T_cvar_write(handle, &algorithm);
  MPI_T_cvar_read(handle, &value);
  MPI_T_cvar_handle_free(&handle);
  return value == algorithm;
}

// ---- Calls

struct Call {
  MPI_Comm comm;
  int n, rank, count, root;
  std::vector<int> a, b;

  Call(MPI_Comm communicator, int elements) : comm(communicator), count(elements) {
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &rank);
    root = n / 3;
    const auto all = static_cast<std::size_t>(4 * n * count + 1);
    a.resize(all);
    b.resize(all);
  }
};

// Blocks of the v-variants: some are empty.
int gathered(const Call& c, int j) { return c.count * (3 * j % 4); }
int exchanged(const Call& c, int from, int to) { return c.count * ((from + 2 * to) % 3); }

std::vector<int> offsets(const std::vector<int>& counts) {
  std::vector<int> begin(counts.size(), 0);
  for (std::size_t i = 1; i < counts.size(); ++i) begin[i] = begin[i - 1] + counts[i - 1];
  return begin;
}

void all_reduce(Call& c) {
  MPI_Allreduce(c.a.data(), c.b.data(), c.count, MPI_INT, MPI_SUM, c.comm);
}
void reduce(Call& c) {
  MPI_Reduce(c.a.data(), c.b.data(), c.count, MPI_INT, MPI_SUM, c.root, c.comm);
}
void reduce_scatter(Call& c) {
  const std::vector<int> counts(c.n, c.count);
  MPI_Reduce_scatter(c.a.data(), c.b.data(), counts.data(), MPI_INT, MPI_SUM, c.comm);
}
void broadcast(Call& c) { MPI_Bcast(c.a.data(), c.count, MPI_INT, c.root, c.comm); }
void all_gather(Call& c) {
  MPI_Allgather(c.a.data(), c.count, MPI_INT, c.b.data(), c.count, MPI_INT, c.comm);
}
void all_gather_v(Call& c) {
  std::vector<int> counts;
  for (int j = 0; j < c.n; ++j) counts.push_back(gathered(c, j));
  const std::vector<int> begin = offsets(counts);
  MPI_Allgatherv(c.a.data(), gathered(c, c.rank), MPI_INT, c.b.data(), counts.data(), begin.data(),
                 MPI_INT, c.comm);
}
void all_to_all(Call& c) {
  MPI_Alltoall(c.a.data(), c.count, MPI_INT, c.b.data(), c.count, MPI_INT, c.comm);
}
void all_to_all_v(Call& c) {
  std::vector<int> out, in;
  for (int j = 0; j < c.n; ++j) {
    out.push_back(exchanged(c, c.rank, j));
    in.push_back(exchanged(c, j, c.rank));
  }
  const std::vector<int> out_begin = offsets(out), in_begin = offsets(in);
  MPI_Alltoallv(c.a.data(), out.data(), out_begin.data(), MPI_INT, c.b.data(), in.data(),
                in_begin.data(), MPI_INT, c.comm);
}
void barrier(Call& c) { MPI_Barrier(c.comm); }
void gather(Call& c) {
  MPI_Gather(c.a.data(), c.count, MPI_INT, c.b.data(), c.count, MPI_INT, c.root, c.comm);
}
void scatter(Call& c) {
  MPI_Scatter(c.a.data(), c.count, MPI_INT, c.b.data(), c.count, MPI_INT, c.root, c.comm);
}

// An operation by our name and Open MPI's, and the names of its algorithms by number; "-": not
// recorded.
struct Operation {
  const char *name, *tuned;
  void (*call)(Call&);
  std::vector<std::string> algorithms;
};

const std::vector<Operation> kOperations{
    {"allreduce",
     "allreduce",
     all_reduce,
     {"fixed", "basic_linear", "nonoverlapping", "recursive_doubling", "ring", "-",
      "rabenseifner"}},
    {"reduce",
     "reduce",
     reduce,
     {"fixed", "linear", "-", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner"}},
    {"reduce_scatter",
     "reduce_scatter",
     reduce_scatter,
     {"fixed", "non-overlapping", "recursive_halving", "ring", "butterfly"}},
    {"broadcast",
     "bcast",
     broadcast,
     {"fixed", "basic_linear", "-", "pipeline", "split_binary_tree", "binary_tree", "binomial",
      "knomial", "scatter_allgather", "scatter_allgather_ring"}},
    {"all_gather",
     "allgather",
     all_gather,
     {"fixed", "-", "bruck", "recursive_doubling", "ring", "neighbor"}},
    {"all_gather_v", "allgatherv", all_gather_v, {"fixed", "default", "bruck", "ring", "neighbor"}},
    {"all_to_all", "alltoall", all_to_all, {"fixed", "linear", "pairwise", "modified_bruck"}},
    {"all_to_all_v", "alltoallv", all_to_all_v, {"fixed", "linear", "pairwise"}},
    {"barrier",
     "barrier",
     barrier,
     {"fixed", "linear", "-", "recursive_doubling", "bruck", "-", "tree"}},
    {"gather", "gather", gather, {"fixed", "linear", "binomial", "linear_sync"}},
    {"scatter", "scatter", scatter, {"fixed", "linear", "binomial"}},
};

// The noted messages of a rank as text.
std::string text_of(const int* sent, int numbers) {
  std::string text;
  for (int i = 0, equal = 1; i < numbers; i += 2, ++equal) {
    if (i + 2 < numbers && sent[i] == sent[i + 2] && sent[i + 1] == sent[i + 3]) continue;
    text += " " + std::to_string(sent[i]) + "x" + std::to_string(sent[i + 1]);
    if (equal > 1) text += "*" + std::to_string(equal);
    equal = 0;
  }
  return text;
}

// Gathers the notes of all ranks and writes the line.
void print(const Operation& operation, const std::string& algorithm, const Call& c) {
  const int numbers = static_cast<int>(noted.size());
  std::vector<int> lengths(c.n);
  MPI_Gather(&numbers, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, c.comm);
  const std::vector<int> begin = offsets(lengths);
  std::vector<int> all(begin.back() + lengths.back());
  MPI_Gatherv(noted.data(), numbers, MPI_INT, all.data(), lengths.data(), begin.data(), MPI_INT, 0,
              c.comm);
  if (c.rank != 0) return;
  std::printf("%s %s n=%d count=%d root=%d", operation.name, algorithm.c_str(), c.n, c.count,
              c.root);
  for (std::size_t r = 0; r < lengths.size(); ++r)
    std::printf(" |%s", text_of(all.data() + begin[r], lengths[r]).c_str());
  std::printf("\n");
}

void record(const Operation& operation, const std::string& algorithm, MPI_Comm comm) {
  const bool by_size = algorithm == "fixed" && std::string(operation.name) != "barrier";
  const std::vector<int> counts = by_size
                                      ? std::vector<int>{1, 10, 100, 1000, 10'000, 30'000, 100'000}
                                      : std::vector<int>{3, 250};
  for (const int count : counts) {
    Call c(comm, count);
    noted.clear();
    noting = true;
    operation.call(c);
    noting = false;
    print(operation, algorithm, c);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0, rank = 0, size = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  stand_in_between();
  for (const Operation& operation : kOperations) {
    if (argc > 1 && std::string(operation.tuned) != argv[1]) continue;
    for (std::size_t a = 0; a < operation.algorithms.size(); ++a) {
      if (operation.algorithms[a] == "-" || !choose(operation.tuned, static_cast<int>(a))) continue;
      for (const int n : {2, 3, 5, 6, 8, 9, 13}) {
        if (n > size) continue;
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, rank < n ? 0 : MPI_UNDEFINED, rank, &comm);
        if (comm == MPI_COMM_NULL) continue;
        record(operation, operation.algorithms[a], comm);
        MPI_Comm_free(&comm);
      }
      choose(operation.tuned, 0);
    }
  }
  MPI_T_finalize();  // before MPI_Finalize: in the other order 4.1.4 crashes
  MPI_Finalize();
  return 0;
}
