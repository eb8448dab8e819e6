# In an environment of Spack, in the clone:
# spack repo add analyzer/packaging/spack/spack_repo/laggard
# spack develop --path $PWD laggard@0.1.0; spack add laggard ^openmpi; spack install
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Laggard(MakefilePackage):
    """Says who a parallel program is waiting for: a preloaded recorder for MPI and OpenSHMEM
    programs, and a parallel analyzer of what it records."""

    license("MIT OR Apache-2.0")

    # The source is a clone that `spack develop` names, or in a mirror of the site.
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    # bindgen reads mpi.h with libclang.
    depends_on("llvm +clang", type="build")
    depends_on("mpi")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("MPICC", self.spec["mpi"].mpicc)
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def build(self, spec, prefix):
        # The libraries are for the one MPI of the spec.
        packages = ("laggard-collector", "laggard-mpi", "laggard")
        which("cargo", required=True)("build", "--release", *[f"-p{name}" for name in packages])

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.prepend_path("CPATH", self.prefix.include)
