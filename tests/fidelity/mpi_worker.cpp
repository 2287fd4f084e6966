// One rank of Open MPI that obeys orders, line by line.
//
//   collective NAME BYTES W N [ALGORITHM]   N calls back to back, after W calls that are not timed
//   separate NAME BYTES W N [ALGORITHM]     the same, with a barrier before each, not timed
//   quit
//
// `mpi_worker ORDERS REPLIES`: a pipe and a file, to whose names it adds its rank. BYTES is the
// size of a rank's larger buffer. ALGORITHM is our name for it; without one Open MPI chooses. Every
// order is answered by one line of JSON, in seconds; the first line of REPLIES has the version.
//
// Barriers before and after the calls: a rank that waits for an order moves no messages, and eager
// messages may be left over when its call has ended.
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mpi.h>
#include <sstream>
#include <string>
#include <vector>

namespace {

void demand(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "mpi_worker: %s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Open MPI's numbers for the algorithms of an all-reduce; 0: its own choice.
const std::map<std::string, int> kAllReduces{
    {"", 0}, {"recursive_doubling", 3}, {"ring", 4}, {"rabenseifner", 6}};

// Applies to communicators made after it.
void choose_all_reduce(const std::string& algorithm) {
  const auto chosen = kAllReduces.find(algorithm);
  demand(chosen != kAllReduces.end(), "there is no algorithm " + algorithm);
  int index = 0, count = 0;
  MPI_T_cvar_handle handle{};
  demand(MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) == MPI_SUCCESS &&
             MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS &&
             MPI_T_cvar_write(handle, &chosen->second) == MPI_SUCCESS,
         "this Open MPI lets nobody choose an algorithm");
  MPI_T_cvar_handle_free(&handle);
}

// One communicator per algorithm, made at the start because making one sends messages.
std::map<std::string, MPI_Comm> communicators() {
  std::map<std::string, MPI_Comm> made;
  for (const auto& [name, number] : kAllReduces) {
    choose_all_reduce(name);
    MPI_Comm_dup(MPI_COMM_WORLD, &made[name]);
  }
  return made;
}

// Opens all connections: Open MPI opens one, and introduces itself, at the first message between
// two ranks.
void connect_all() {
  int n = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  std::vector<int> from(n), to(from);
  MPI_Alltoall(from.data(), 1, MPI_INT, to.data(), 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

std::function<void()> collective(const std::string& name, std::size_t bytes, MPI_Comm comm) {
  int n = 0;
  MPI_Comm_size(comm, &n);
  const auto count = static_cast<int>(bytes / sizeof(float)), block = count / n;
  const auto from = std::make_shared<std::vector<float>>(bytes / sizeof(float)),
             to = std::make_shared<std::vector<float>>(bytes / sizeof(float));
  if (name == "barrier") return [=] { MPI_Barrier(comm); };
  if (name == "all_reduce")
    return [=] { MPI_Allreduce(from->data(), to->data(), count, MPI_FLOAT, MPI_SUM, comm); };
  if (name == "broadcast") return [=] { MPI_Bcast(from->data(), count, MPI_FLOAT, 0, comm); };
  if (name == "all_gather")
    return
        [=] { MPI_Allgather(from->data(), block, MPI_FLOAT, to->data(), block, MPI_FLOAT, comm); };
  if (name == "all_to_all")
    return
        [=] { MPI_Alltoall(from->data(), block, MPI_FLOAT, to->data(), block, MPI_FLOAT, comm); };
  demand(name == "reduce_scatter", "there is no collective " + name);
  const std::vector<int> counts(n, block);
  return [=] {
    MPI_Reduce_scatter(from->data(), to->data(), counts.data(), MPI_FLOAT, MPI_SUM, comm);
  };
}

// Seconds per call on average, and of each call.
std::string timed(const std::function<void()>& call, int warmups, int calls, bool separate) {
  for (int i = 0; i < warmups; ++i) call();
  MPI_Barrier(MPI_COMM_WORLD);
  std::string each;
  double last = MPI_Wtime(), all = 0;
  for (int i = 0; i < calls; ++i) {
    if (separate && i > 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      last = MPI_Wtime();
    }
    call();
    const double now = MPI_Wtime();
    each += (i == 0 ? "" : ", ") + std::to_string(now - last);
    all += now - last;
    last = now;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return "{\"seconds\": " + std::to_string(all / calls) + ", \"calls\": [" + each + "]}";
}

void obey(const std::string& orders, const std::string& replies) {
  std::ofstream out(replies);
  const auto by_algorithm = communicators();
  connect_all();
  out << "{\"version\": \"" << OMPI_MAJOR_VERSION << "." << OMPI_MINOR_VERSION << "."
      << OMPI_RELEASE_VERSION << "\"}" << std::endl;
  std::ifstream in(orders);
  for (std::string line; std::getline(in, line) && line != "quit";) {
    std::istringstream words(line);
    std::string command, name, algorithm;
    std::size_t bytes = 0;
    int warmups = 0, calls = 0;
    words >> command >> name >> bytes >> warmups >> calls >> algorithm;
    const bool separate = command == "separate";
    demand((separate || command == "collective") && calls > 0 && by_algorithm.count(algorithm) == 1,
           "there is no order '" + line + "'");
    out << timed(collective(name, bytes, by_algorithm.at(algorithm)), warmups, calls, separate)
        << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0, rank = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  demand(argc == 3, "mpi_worker ORDERS REPLIES");
  obey(argv[1] + std::to_string(rank), argv[2] + std::to_string(rank));
  MPI_T_finalize();  // before MPI_Finalize: in the other order 4.1.4 crashes
  MPI_Finalize();
  return 0;
}
