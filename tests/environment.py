"""What the environment has to say before JAX is imported, for tests to compile fast."""

from importlib.metadata import version
from pathlib import Path

# XLA's older emitters compile up to four times as fast and run hardly slower at these sizes.
# jaxlib 0.11 has them no more, and ends at a flag that it does not know.
_OLDER = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
SETTINGS = {
    # Compilation is most of the suite's time, and no test asks for speed. Set it to 0 to test code
    # as optimised as in a run.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    # A program cut into 32 parts, to be compiled side by side, takes longer where tests run side
    # by side.
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false " * _OLDER
    + "--xla_cpu_parallel_codegen_split_count=1",
    # Devices, of which there are several, share a thread: other cores have tests of their own.
    "NPROC": "1",
    # Where in Python an operation came from costs a twentieth of the time to compile it.
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
    # Threads of OpenBLAS wait by spinning: beside other tests that is a third of all CPU time.
    "OPENBLAS_NUM_THREADS": "1",
    # Programs that were compiled once are kept, for the processes of a run and for later runs.
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parents[1] / ".pytest_cache" / "programs"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}
