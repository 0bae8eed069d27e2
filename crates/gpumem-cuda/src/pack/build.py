#!/usr/bin/env python3
"""Writes pack.ptx from the pack.cu of gpumem-core, with the NVRTC of CUDA 12.0, so that every driver from 12.0 on reads the result.

    pip install nvidia-cuda-nvrtc-cu12==12.0.140
    python3 build.py [path of libnvrtc.so.12]
"""
import ctypes
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
SOURCE = HERE.parents[2] / "gpumem-layout/src/pack/pack.cu"


def library():
    if len(sys.argv) > 1:
        return sys.argv[1]
    import nvidia.cuda_nvrtc  # of the package named above

    return str(pathlib.Path(nvidia.cuda_nvrtc.__path__[0]) / "lib" / "libnvrtc.so.12")


def fnv1a(data):
    """The sum by which a test sees whether both files belong together."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def main():
    nvrtc = ctypes.CDLL(library())
    source = SOURCE.read_bytes()
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"pack.cu", 0, None, None) == 0
    flags = [b"--gpu-architecture=compute_50", b"--std=c++14"]
    status = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    print(log.value.decode(), file=sys.stderr)
    assert status == 0, status
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetPTX(program, ptx) == 0
    head = f"// Written by build.py from pack.cu, whose FNV-1a sum is {fnv1a(source):016x}. Do not edit.\n"
    (HERE / "pack.ptx").write_text(head + ptx.value.decode())


if __name__ == "__main__":
    main()
