# spack repo add PATH/TO/laggard/packaging/spack; spack install laggard ^openmpi
from spack.package import *


class Laggard(MakefilePackage):
    """Says who a parallel program is waiting for: a preloaded recorder for MPI and OpenSHMEM
    programs, and a parallel analyzer of what it records."""

    license("MIT OR Apache-2.0", checked_by="laggard")

    # Where a site keeps the source: a mirror, or a clone that `spack develop` names.
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("llvm +clang", type="build")
    depends_on("gmake", type="build")
    depends_on("mpi")

    def setup_build_environment(self, env):
        env.set("MPICC", self.spec["mpi"].mpicc)
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def build(self, spec, prefix):
        # The libraries are those for the one MPI of the spec.
        cargo = which("cargo")
        packages = ["laggard-collector", "laggard-mpi", "laggard"]
        cargo("build", "--release", *[word for name in packages for word in ("-p", name)])

    def install(self, spec, prefix):
        make("install", "PREFIX={0}".format(prefix))

    def setup_run_environment(self, env):
        env.prepend_path("CPATH", self.prefix.include)
