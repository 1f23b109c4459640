// The checkpoint as an HDF5 file, through parallel HDF5: one dataset a variable, each written by
// all ranks at once.
#pragma once

#include <string>

#include "proxies/checkpoint/mesh.hpp"
#include "proxies/workload/options.hpp"

namespace checkpoint {

/// Whether this program was built with the HDF5 of its MPI.
bool hdf5_is_built_in();

/// The Debian package that makes it so.
constexpr const char* hdf5_package = PROXY_HDF5_PACKAGE;

/// Writes or reads all variables. Collective; ends the job on an error. Returns the seconds that
/// this rank spent in H5Dwrite or H5Dread.
double write_hdf5(const std::string& path, const Mesh& mesh, const workload::Options& options);
double read_hdf5(const std::string& path, const Mesh& mesh, const workload::Options& options);

}  // namespace checkpoint
