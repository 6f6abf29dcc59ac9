"""The catalogue of planted faults: what each plants, and what the accuracy gate owes it.

A fault is C around a call of the right kernel. `before` and `after` see

    t           the op's tensors, inputs and then outputs: struct siege_tensor of planted_elements.h
    INPUTS      how many inputs there are; TENSORS: how many tensors
    size        the sizes, SIZES of them; problem: those of the problem that is judged
    right()     runs the right kernel on the tensors as they are now

A fault with an `element` condition spoils the elements n for which it holds, in the last output (in
all outputs where it says `everywhere`), knowing row, column, rows, columns and e, the number of
elements. Such faults are planted in CUDA kernels, too.
"""

import dataclasses

REJECTED = "rejected"  # the gate must refuse the kernel
CONTAINED = "contained"  # either verdict, but there is one and nothing outlives it
OUT = "out of scope"  # the gate may pass it; `why` says why


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    plants: str
    before: str = ""
    after: str = ""
    outside: str = ""  # at file scope
    element: str = ""
    change: str = "siege_spoil(o, n);"
    everywhere: bool = False
    calls: bool = True  # the right kernel runs between `before` and `after`
    expects: str = REJECTED
    why: str = ""
    needs: object = None  # of a subject: why the fault does not apply, or None
    large: bool = False  # judged at the sizes of the tune row
    wide: bool = False  # needs the op in f32, as wide()
    watched: bool = False  # a GPU has no pages that guard: there `verify --sanitize` must reject it
    slow: bool = False  # takes the gate's time limit: once a run unless --slow
    group: str = ""

    @property
    def is_hostile(self):
        """Attacks the process, or leaves something there."""
        return self.group == "process" or self.group == "state" and self.expects != REJECTED


def groups():
    """Name -> faults, in the order of the report."""
    from planted import memory_faults, process_faults, state_faults, value_faults
    found = {"wrong elements": value_faults.ELEMENTS, "sizes": value_faults.SIZES,
             "values": value_faults.VALUES, "precision": value_faults.PRECISION,
             "memory": memory_faults.FAULTS, "state": state_faults.FAULTS,
             "process": process_faults.FAULTS}
    return {group: [dataclasses.replace(fault, group=group) for fault in faults]
            for group, faults in found.items()}


def faults():
    return [fault for found in groups().values() for fault in found]


# The right kernel in a wrapper that plants nothing: a gate that refuses it tells nothing.
NOTHING = Fault("nothing", "Nothing: the wrapper alone, which must pass.", group="control")
