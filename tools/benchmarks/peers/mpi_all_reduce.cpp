// The yardstick of mpi.cpp: MPI_Allreduce of floats, as a separate program for mpirun.
//
//   mpi_all_reduce BYTES CALLS     prints seconds per call, and KiB resident, summed over processes
//
// Every process calls once to warm up; then CALLS calls are timed between two barriers.
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <sys/resource.h>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) return 2;
  const auto elements =
      static_cast<std::size_t>(std::strtoull(argv[1], nullptr, 10) / sizeof(float));
  const int calls = std::atoi(argv[2]);
  std::vector<float> from(elements, 1.0F), to(elements);
  const auto reduce = [&] {
    MPI_Allreduce(from.data(), to.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  };
  reduce();
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; i < calls; ++i) reduce();
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - began;

  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  long resident = 0;
  MPI_Reduce(&usage.ru_maxrss, &resident, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  const bool right = to[0] == static_cast<float>(size) && to[elements - 1] == to[0];
  if (rank == 0) std::printf("%.9f %ld\n", seconds / calls, resident);
  MPI_Finalize();
  return right ? 0 : 1;
}
