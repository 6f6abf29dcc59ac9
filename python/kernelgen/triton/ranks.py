"""The same choice in every process of a distributed program, without a collective and so without a hang.

The first process that has a choice puts it into the store that torch.distributed began with; all others take it from
there. Nobody waits for anybody: a collective would, for ranks that never launch this kernel.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any, Optional

from ..library import log
from .records import Place


def _store() -> Optional[Any]:
    """That of the initialised process group; None: there is none."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    if distributed.get_world_size() < 2:
        return None
    return distributed.distributed_c10d._get_default_store()


def agree(place: Place, asked: str, choice: str) -> str:
    """The choice of the first process that asked for this place, or the own one where there is nobody to ask."""
    try:
        store = _store()
        if store is None:
            return choice
        name = "kernelgen/" + hashlib.sha256(repr((place, asked)).encode()).hexdigest()
        return bytes(store.compare_set(name, "", choice)).decode()
    except Exception as error:  # the store's process is gone, or it has no compare_set
        log.warning("kernelgen.triton: the choice for %s could not be compared with other ranks (%s): ranks may use "
                    "different configs", place, error)
        return choice
