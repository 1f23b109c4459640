#include "tests/mpi/random_access/observations.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "tests/mpi/random_access/random.hpp"

namespace random_access {
namespace {

std::string class_name(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  switch (error_class) {
    case MPI_SUCCESS:
      return "SUCCESS";
    case MPI_ERR_ACCESS:
      return "ACCESS";
    case MPI_ERR_AMODE:
      return "AMODE";
    case MPI_ERR_ARG:
      return "ARG";
    case MPI_ERR_COUNT:
      return "COUNT";
    case MPI_ERR_FILE:
      return "FILE";
    case MPI_ERR_IO:
      return "IO";
    case MPI_ERR_NO_SUCH_FILE:
      return "NO_SUCH_FILE";
    case MPI_ERR_OTHER:
      return "OTHER";
    case MPI_ERR_READ_ONLY:
      return "READ_ONLY";
    case MPI_ERR_TYPE:
      return "TYPE";
    case MPI_ERR_UNSUPPORTED_OPERATION:
      return "UNSUPPORTED_OPERATION";
    default:
      return "class " + std::to_string(error_class);
  }
}

std::uint64_t hash(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t value = mix(bytes.size());
  for (const std::uint8_t byte : bytes) value = mix(value ^ byte);
  return value;
}

}  // namespace

void Observations::begin(int step, const std::string& what) {
  line_.str("");
  line_ << "case " << case_ << " step " << step << " rank " << rank_ << ' ' << what;
}

void Observations::expect(const char* name, std::int64_t seen, std::int64_t expected) {
  line_ << ' ' << name << '=' << seen;
  if (seen != expected) line_ << '!' << expected;
}

void Observations::expect_class(const char* name, int code, int expected_class) {
  line_ << ' ' << name << '=' << class_name(code);
  if (class_name(code) != class_name(expected_class)) line_ << '!' << class_name(expected_class);
}

void Observations::note_class(const char* name, int code) {
  line_ << ' ' << name << '~' << class_name(code);
}

void Observations::expect_bytes(const char* name, const std::vector<std::uint8_t>& seen,
                                const std::vector<std::uint8_t>& expected) {
  line_ << ' ' << name << '=' << std::hex << hash(seen) << std::dec;
  if (seen == expected) return;
  const std::size_t common = std::min(seen.size(), expected.size());
  const auto length = static_cast<std::ptrdiff_t>(common);
  const auto difference = std::mismatch(seen.begin(), seen.begin() + length, expected.begin());
  line_ << "!byte" << difference.first - seen.begin() << "of" << seen.size();
}

void Observations::end() { text_ += line_.str() + '\n'; }

void Observations::print(MPI_Comm comm) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int mine = static_cast<int>(text_.size());
  std::vector<int> lengths(static_cast<std::size_t>(size)), starts(lengths);
  MPI_Gather(&mine, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm);
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), 0);
  std::string all(static_cast<std::size_t>(starts.back() + lengths.back()), '\0');
  MPI_Gatherv(text_.data(), mine, MPI_CHAR, all.data(), lengths.data(), starts.data(), MPI_CHAR, 0,
              comm);
  if (rank == 0) {
    std::fputs(all.c_str(), stdout);
    std::fflush(stdout);
  }
  text_.clear();
}

}  // namespace random_access
