#include "proxies/checkpoint/hdf5_format.hpp"

#include <hdf5.h>
#include <mpi.h>

#include <utility>
#include <vector>

#include "proxies/workload/session.hpp"
#include "proxies/workload/shared_file.hpp"

namespace checkpoint {
namespace {

enum class Direction { write, read };

/// HDF5 has already printed its error stack when a call fails.
template <typename Result>
Result require(Result result, const char* call, const std::string& path) {
  if (result < 0) workload::fail(std::string(call) + " on " + path + " failed");
  return result;
}

/// An HDF5 identifier with the function that gives it back.
class Handle {
 public:
  using Closer = herr_t (*)(hid_t);

  Handle(hid_t id, Closer closer, const char* call, const std::string& path)
      : id_(require(id, call, path)), closer_(closer) {}
  Handle(Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), closer_(other.closer_) {}
  ~Handle() {
    if (id_ >= 0) closer_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  hid_t get() const { return id_; }

  /// Gives the identifier back where an error matters.
  void close(const char* call, const std::string& path) {
    require(closer_(id_), call, path);
    id_ = H5I_INVALID_HID;
  }

 private:
  hid_t id_;
  Closer closer_;
};

std::vector<hsize_t> sizes(std::uint64_t blocks, const workload::Dimensions& of_block) {
  std::vector<hsize_t> all{blocks};
  all.insert(all.end(), of_block.begin(), of_block.end());
  return all;
}

Handle simple_space(const std::vector<hsize_t>& dimensions, const std::string& path) {
  return Handle(H5Screate_simple(static_cast<int>(dimensions.size()), dimensions.data(), nullptr),
                H5Sclose, "H5Screate_simple", path);
}

/// The variable's elements in this rank's memory. An unknown is one double of each cell that is not
/// a guard; the buffer starts at the first unknown's double of the first guard cell.
Handle memory_space(const Variable& variable, const Mesh& mesh, const std::string& path) {
  const Shape& shape = mesh.shape();
  const auto owned = sizes(shape.blocks, variable.of_block);
  if (!variable.is_unknown) return simple_space(owned, path);
  const auto whole = mesh.unknowns_in_memory();
  Handle space = simple_space({whole.begin(), whole.end()}, path);
  const hsize_t guard = shape.guard;
  const hsize_t start[] = {0, guard, guard, guard, 0};
  std::vector<hsize_t> count = owned;
  count.push_back(1);
  require(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count.data(), nullptr),
          "H5Sselect_hyperslab", path);
  return space;
}

/// The blocks of this rank in the dataset.
Handle file_space(const Variable& variable, const Mesh& mesh, const std::string& path) {
  Handle space = simple_space(sizes(mesh.total_blocks(), variable.of_block), path);
  const auto count = sizes(mesh.shape().blocks, variable.of_block);
  std::vector<hsize_t> start(count.size(), 0);
  start.front() = mesh.first_block();
  require(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                              nullptr),
          "H5Sselect_hyperslab", path);
  return space;
}

Handle create_file(const std::string& path, hid_t access) {
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "H5Pcreate", path);
  // Two runs must write the same bytes, so nothing may carry the time of day.
  require(H5Pset_obj_track_times(creation.get(), false), "H5Pset_obj_track_times", path);
  return Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access), H5Fclose,
                "H5Fcreate", path);
}

Handle create_dataset(hid_t file, const Variable& variable, hid_t type, hid_t space,
                      const std::string& path) {
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate", path);
  require(H5Pset_obj_track_times(creation.get(), false), "H5Pset_obj_track_times", path);
  require(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time", path);
  return Handle(H5Dcreate2(file, variable.name.c_str(), type, space, H5P_DEFAULT, creation.get(),
                           H5P_DEFAULT),
                H5Dclose, "H5Dcreate2", path);
}

double transfer(const std::string& path, const Mesh& mesh, const workload::Options& options,
                Direction direction) {
  const bool writing = direction == Direction::write;
  const workload::Info info(options);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate", path);
  require(H5Pset_fapl_mpio(access.get(), MPI_COMM_WORLD, info.get()), "H5Pset_fapl_mpio", path);
  const Handle kind(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "H5Pcreate", path);
  require(H5Pset_dxpl_mpio(kind.get(),
                           options.independent ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE),
          "H5Pset_dxpl_mpio", path);

  Handle file = writing ? create_file(path, access.get())
                        : Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose,
                                 "H5Fopen", path);
  double seconds = 0;
  for (const Variable& variable : mesh.variables()) {
    const hid_t type =
        variable.type == Variable::Type::int32 ? H5T_NATIVE_INT32 : H5T_NATIVE_DOUBLE;
    const Handle memory = memory_space(variable, mesh, path);
    const Handle selection = file_space(variable, mesh, path);
    Handle dataset = writing ? create_dataset(file.get(), variable, type, selection.get(), path)
                             : Handle(H5Dopen2(file.get(), variable.name.c_str(), H5P_DEFAULT),
                                      H5Dclose, "H5Dopen2", path);
    const double start = MPI_Wtime();
    if (writing) {
      require(
          H5Dwrite(dataset.get(), type, memory.get(), selection.get(), kind.get(), variable.memory),
          "H5Dwrite", path);
    } else {
      require(
          H5Dread(dataset.get(), type, memory.get(), selection.get(), kind.get(), variable.memory),
          "H5Dread", path);
    }
    seconds += MPI_Wtime() - start;
    dataset.close("H5Dclose", path);
  }
  if (writing && options.sync) require(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), "H5Fflush", path);
  file.close("H5Fclose", path);
  return seconds;
}

}  // namespace

bool hdf5_is_built_in() { return true; }

double write_hdf5(const std::string& path, const Mesh& mesh, const workload::Options& options) {
  return transfer(path, mesh, options, Direction::write);
}

double read_hdf5(const std::string& path, const Mesh& mesh, const workload::Options& options) {
  return transfer(path, mesh, options, Direction::read);
}

}  // namespace checkpoint
