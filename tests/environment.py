"""What the environment has to say before JAX is imported, for tests to compile fast."""

SETTINGS = {
    # Compilation is most of the suite's time, and no test asks for speed. Set it to 0 to test code
    # as optimised as in a run.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    # XLA's older emitters compile up to four times as fast and run hardly slower at these sizes;
    # and a program cut into 32 parts, to be compiled side by side, takes longer where tests run
    # side by side.
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
}
