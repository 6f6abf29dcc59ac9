"""Builds the wheel: a PEP 517 backend that needs nothing but CMake, a C compiler and this clone.

The C library is built with the preset `wheel`, its dependencies inside. One wheel serves every Python: the
package calls the library by ctypes, and the one extension module has the limited C API. See
docs/dependencies.md.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# Libraries that every Linux of a manylinux tag has.
EVERYWHERE = re.compile(r"(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|libz\.so\.1|ld-linux.*)$")


class UnsupportedOperation(Exception):
    """PEP 517 asks for this name."""


def project():
    """Name, version, description and Python of pyproject.toml; Python 3.9 has no reader of TOML."""
    text = (HERE / "pyproject.toml").read_text().partition("[project]")[2]
    return dict(re.findall(r'^([\w-]+) = "(.*)"$', text, re.M))


def run(*words):
    try:
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        sys.exit(f"{words[0]} is not installed; `make` in the clone, or scripts/bootstrap, installs what is missing")
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def check_python():
    """The extension module needs headers, and the limited C API."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit("the wheel is built by a Python with a GIL; it can be installed for this one then")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        sys.exit(f"Python.h is not in {sysconfig.get_path('include')}; on Debian and Ubuntu: apt-get install python3-dev")


def build():
    """The folder of the package, with everything compiled."""
    check_python()
    if not (ROOT / "CMakePresets.json").exists():
        raise UnsupportedOperation("the package is built in a clone of KernelGen, and by pip 21.3 or newer")
    folder = ROOT / "build" / "wheel"
    run("cmake", "--preset", "wheel", f"-DPython3_EXECUTABLE={sys.executable}")
    run("cmake", "--build", str(folder), "--target", "python_package")
    return folder / "python" / "kernelgen"


def needed(path):
    """The libraries that a file is linked with, and that some systems lack."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", str(path)))
    return [name for name in names if not EVERYWHERE.match(name)]


def found(path, name):
    """Where the loader finds a library that a file needs."""
    line = re.search(rf"^\s*{re.escape(name)} => (\S+)", run("ldd", str(path)), re.M)
    if not line:
        sys.exit(f"{name}, which {path} is linked with, is not found")
    return Path(line.group(1)).resolve()


def add_libraries(package):
    """Copies what only some systems have beside the library, which looks there."""
    library = package.parents[1] / "libkernelgen.so" # with nothing beside it
    for name in needed(library):
        shutil.copy(found(library, name), package / "lib" / name)
        if needed(package / "lib" / name):
            sys.exit(f"{name} needs {needed(package / 'lib' / name)}, which would not be found")


def notices_of(package):
    """What the licences of packed libraries ask to come with them, as Debian's packages have it."""
    for library in (package / "lib").glob("*.so.*"):
        origin = found(package.parents[1] / "libkernelgen.so", library.name)
        owner = subprocess.run(["dpkg-query", "-S", f"*/{origin.name}"], capture_output=True, text=True).stdout
        notice = Path("/usr/share/doc") / owner.split(":")[0] / "copyright"
        if not notice.is_file():
            sys.exit(f"the copyright notice of {origin} was not found, which a wheel with it must have")
        yield f"{library.name}.txt", notice.read_bytes()


def files_of(package):
    return sorted(path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def platform_tag(files):
    """By the newest symbol of glibc that anything in the wheel needs."""
    newest = (2, 17)
    for path in files:
        if path.read_bytes()[:4] == b"\x7fELF":
            for version in re.findall(r"Name: GLIBC_2\.(\d+)", run("readelf", "-V", str(path))):
                newest = max(newest, (2, int(version)))
    return f"manylinux_{newest[0]}_{newest[1]}_{os.uname().machine}"


def metadata():
    about = project()
    return (f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
            f"Summary: {about['description']}\nRequires-Python: {about['requires-python']}\n")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    about = project()
    info = f"{about['name']}-{about['version']}.dist-info"
    (Path(metadata_directory) / info).mkdir()
    (Path(metadata_directory) / info / "METADATA").write_text(metadata())
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = build()
    add_libraries(package)
    about, files = project(), files_of(package)
    tag = f"py3-none-{platform_tag(files)}"
    name = f"{about['name']}-{about['version']}-{tag}.whl"
    records = []

    def add(archive, path, data, mode):
        entry = zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)) # the same wheel from the same files
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        records.append(f"{path},sha256={digest},{len(data)}\n")

    info = f"{about['name']}-{about['version']}.dist-info"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as archive:
        for path in files:
            mode = 0o755 if os.access(path, os.X_OK) else 0o644
            add(archive, f"kernelgen/{path.relative_to(package)}", path.read_bytes(), mode)
        add(archive, f"{info}/METADATA", metadata().encode(), 0o644)
        for notice, text in notices_of(package):
            add(archive, f"{info}/licenses/{notice}", text, 0o644)
        wheel = f"Wheel-Version: 1.0\nGenerator: kernelgen_build\nRoot-Is-Purelib: false\nTag: {tag}\n"
        add(archive, f"{info}/WHEEL", wheel.encode(), 0o644)
        archive.writestr(f"{info}/RECORD", "".join(records) + f"{info}/RECORD,,\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise UnsupportedOperation("there is no source distribution: the package is built in a clone of KernelGen")
