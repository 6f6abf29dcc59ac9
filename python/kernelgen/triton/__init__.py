"""Tuning of Triton kernels by what the compiler made of them. See docs/triton-tuning.md.

    @kernelgen.triton.autotune(configs, key)
    @triton.autotune(configs, key, prune_configs_by={"early_config_prune": kernelgen.triton.prune(top=0.2)})

Importing this package needs neither Triton nor a GPU.
"""

from .autotuning import autotune
from .contest_files import write_candidate
from .inspecting import explain, facts
from .config_judges import Candidate
from .pruning import Outcome, prune

__all__ = ["Candidate", "Outcome", "autotune", "explain", "facts", "prune", "write_candidate"]
