"""Faults of memory: writes and reads outside of tensors, changed inputs."""

from planted.catalogue import Fault

# One byte at the place gets a value that the gate never puts there. The last kernel on a GPU may have
# several functions, so doing it twice must be the same as doing it once.
WRITE = """
for (int i = {first}; i < {end}; i++) {{
    struct siege_tensor *o = &t[i];
    volatile unsigned char *at = (volatile unsigned char *)o->data + ({place});
    if (o->elements > 0)
        *at = 0x33;
}}"""
READ = """
for (int i = 0; i < INPUTS; i++) {{
    struct siege_tensor *o = &t[i];
    volatile unsigned char *at = (volatile unsigned char *)o->data + ({place});
    if (o->elements > 0)
        (void)*at;
}}"""
OUTPUTS = {"first": "INPUTS", "end": "TENSORS"}
ALL_INPUTS = {"first": "0", "end": "INPUTS"}


def has_inputs(subject):
    return None if subject.op.inputs else "it has no inputs"


def write(name, where, place, of, needs=None):
    return Fault(name, f"A byte is written {where}.", after=WRITE.format(place=place, **of),
                 needs=needs)


def read(name, where, place):
    return Fault(name, f"A byte is read {where}; the value is not used.", needs=has_inputs,
                 before=READ.format(place=place), watched=True, why="On GPUs with `--sanitize`.")


FAULTS = [
    write("write_behind", "directly behind each output", "o->bytes", OUTPUTS),
    write("write_4k_behind", "4 KiB behind each output", "o->bytes + 4096", OUTPUTS),
    write("write_64k_behind", "64 KiB behind each output", "o->bytes + 65536", OUTPUTS),
    write("write_before", "directly before each output", "-1", OUTPUTS),
    write("write_4k_before", "4 KiB before each output", "-4096", OUTPUTS),
    write("write_64k_before", "64 KiB before each output", "-65536", OUTPUTS),
    write("write_behind_inputs", "directly behind each input", "o->bytes", ALL_INPUTS, has_inputs),
    write("write_before_inputs", "directly before each input", "-1", ALL_INPUTS, has_inputs),
    read("read_behind", "directly behind each input", "o->bytes"),
    read("read_1m_behind", "1 MiB behind each input", "o->bytes + 1048576"),
    read("read_before", "directly before each input", "-1"),
    read("read_1m_before", "1 MiB before each input", "-1048576"),
    Fault("changes_input", "The last bit of an input's first element is set.",
          needs=has_inputs, after="""
if (t[0].elements > 0)
    siege_set_bits(&t[0], 0, siege_bits(&t[0], 0) | 1);"""),
    Fault("changes_and_restores", "An input's first element is changed, and restored at the end.",
          needs=has_inputs, before="""
if (t[0].elements > 0)
    siege_set_bits(&t[0], 0, siege_bits(&t[0], 0) ^ 1);
siege_fence();
if (t[0].elements > 0)
    siege_set_bits(&t[0], 0, siege_bits(&t[0], 0) ^ 1);"""),
]
