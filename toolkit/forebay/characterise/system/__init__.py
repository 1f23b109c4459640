"""What a system can do, measured: devices, file systems, MPI-IO, network and memory [METHOD]."""
